"""Models through `torch.compile(backend="regal")`: equal results, measured peaks and times.

`python -m benchmarks.torch_models rows.jsonl` adds the rows that are missing, one child process
per model and mode; `--table` prints what the file holds. Peers run in the same process on the
same graphs: eager PyTorch, the graphs as traced, and the orders of Inductor's three rules.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.torch_runs import MODES, Heap, collect, read

TIMEOUT_S = 900
REPEATS = 3
PEERS = ("traced", "lpmf", "bfs", "dfs")
TIMM = {
    "resnet18": 64, "resnet26d": 64, "seresnet33ts": 96, "res2net50_26w_4s": 64, "resnest14d": 64,
    "skresnet18": 64, "densenet121": 64, "dla34": 64, "hrnet_w18_small": 64,
    "inception_v3": 96, "inception_v4": 96, "xception41": 64, "vgg11_bn": 64,
    "mobilenetv3_small_100": 64, "efficientnet_b0": 64, "tf_efficientnetv2_b0": 64,
    "ghostnet_100": 64, "mnasnet_100": 64, "rexnet_100": 64, "regnety_002": 64, "dpn68": 64,
    "cspresnet50": 64, "selecsls42b": 64, "convnext_atto": 64, "mixer_s32_224": 224,
    "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224, "swin_tiny_patch4_window7_224": 224,
    "pit_ti_224": 224, "levit_128s": 224, "coat_tiny": 224, "crossvit_tiny_240": 240,
    "mobilevit_xxs": 64, "poolformer_s12": 64, "pvt_v2_b0": 64, "xcit_nano_12_p16_224": 224,
    "efficientformer_l1": 224, "repvgg_a0": 64, "nasnetalarge": 96, "pnasnet5large": 96,
    "starnet_s1": 64, "mixnet_s": 64, "ese_vovnet19b_dw": 64, "efficientvit_b0": 64,
    "mambaout_femto": 64, "inception_next_atto": 64, "repvit_m0_9": 64, "mobileone_s0": 64,
    "cs3darknet_s": 64, "hgnetv2_b0": 64, "edgenext_xx_small": 64, "rdnet_tiny": 64,
    "tiny_vit_5m_224": 224, "visformer_tiny": 224, "gcvit_xxtiny": 224, "mvitv2_tiny": 224,
    "coatnet_pico_rw_224": 224, "twins_pcpvt_small": 224, "halonet26t": 256, "resmlp_12_224": 224,
    "gmlp_ti16_224": 224, "cait_xxs24_224": 224, "hiera_tiny_224": 224, "convit_tiny": 224,
    "sequencer2d_s": 224, "focalnet_tiny_srf": 224,
}  # fmt: skip
TORCHVISION = {
    "googlenet": 96, "shufflenet_v2_x0_5": 64, "squeezenet1_1": 64, "mobilenet_v2": 64,
    "densenet121": 64, "alexnet": 64,
}  # fmt: skip
SMALL = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 256, "vocab_size": 1000}  # fmt: skip
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "bert": SMALL,
    "albert": SMALL,
    "electra": SMALL,
    "roberta": SMALL,
    "distilbert": {"dim": 128, "n_layers": 2, "n_heads": 4, "hidden_dim": 256, "vocab_size": 1000},
    "gpt2": {"n_embd": 128, "n_layer": 2, "n_head": 4, "vocab_size": 1000},
    "llama": {**SMALL, "num_key_value_heads": 4},
    "qwen2": {**SMALL, "num_key_value_heads": 4},
    "mixtral": {**SMALL, "num_key_value_heads": 4, "num_local_experts": 4},
    "t5": {"d_model": 128, "d_kv": 32, "d_ff": 256, "num_layers": 2, "num_heads": 4,
           "vocab_size": 1000},
    "opt": {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 256,
            "word_embed_proj_dim": 128, "vocab_size": 1000},
    "bart": {"d_model": 128, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 1000,
             "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 256,
             "decoder_ffn_dim": 256},
    "olmoe": {**SMALL, "num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 2},
    "phi": {**SMALL, "num_key_value_heads": 4},
    "gemma": {**SMALL, "num_key_value_heads": 4, "head_dim": 32},
    "deberta-v2": SMALL,
}  # fmt: skip
ZOO = (
    "unet-3", "unet-4-residual", "unetpp-3", "bifpn-4x3", "hourglass-1x3", "experts-4x8",
    "randwire-ws-10x3-0", "cells-8x4-0", "treelstm-4", "mmoe-4-2x2", "wavenet-1x8", "bilstm-2x16",
    "unet-3-gates", "bifpn-5x3", "experts-2x4", "gnn-attention-4", "dlrm-8x3", "hourglass-2x4",
    "lstm-3x12-attention", "seq2seq-2x8", "tcn-4", "randwire-ba-24x3-0", "unetpp-4",
    "unet-5-residual",
)  # fmt: skip


def names() -> list[str]:
    """Return all models: sources take turns, so that any beginning of the list is mixed."""
    sources = {"zoo": ZOO, "transformers": TRANSFORMERS, "torchvision": TORCHVISION, "timm": TIMM}
    rows = [[f"{source}/{name}" for name in names] for source, names in sources.items()]
    return [name for turn in zip_longest(*rows) for name in turn if name is not None]


def batch_of(size: int) -> int:
    """Return how many images make the activations large beside the weights, and run quickly."""
    return 8 if size < 128 else 2


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model and its inputs; weights are drawn from seed 0."""
    from regal.data.tracers.torch_common import Positional, import_torchvision

    import_torchvision()
    import torch

    torch.manual_seed(0)
    source, _, kind = name.partition("/")
    if source == "timm":
        import timm

        size = TIMM[kind]
        return timm.create_model(kind), (torch.randn(batch_of(size), 3, size, size),)
    if source == "torchvision":
        import torchvision

        size = TORCHVISION[kind]
        options = {"init_weights": False} if kind == "googlenet" else {}
        model = torchvision.models.get_model(kind, weights=None, **options)
        return model, (torch.randn(batch_of(size), 3, size, size),)
    if source == "zoo":
        from regal.data.tracers.torch_zoo import RECIPES

        _, make, inputs = RECIPES[kind]
        model = make()
        # Images that are the same everywhere make normalization in training divide by nothing.
        given = [torch.randn_like(x) if x.is_floating_point() else x for x in inputs(2)]
        return model, tuple(given)
    import transformers

    from regal.data.tracers.transformers_inputs import inputs_of

    config = transformers.AutoConfig.for_model(kind, **TRANSFORMERS[kind])
    config._experts_implementation = "batched_mm"
    model = transformers.AutoModel.from_config(config)
    model.config.use_cache = False
    given = {
        key: torch.randint(1, 1000, value.shape) if key.endswith("input_ids") else value
        for key, value in inputs_of(model, config, 2).items()
    }
    return Positional(model, tuple(given)), tuple(given.values())


def measured(name: str, mode: str) -> dict[str, Any]:
    """Return the row of one model in one mode."""
    import copy

    import numpy as np
    import torch
    from benchmarks.peer_inductor import inductor_order
    from torch.utils._pytree import tree_leaves

    from regal.backends.torch.executor import boxed, callable_of
    from regal.backends.torch.tracker import MemoryTracker
    from regal.plan.problem import order_problem, planned_workspace
    from regal.search.exact import lower_bound
    from regal.search.offsets import greedy_by_size
    from regal.search.packing import plan_of_order
    from regal.torch.backend import Compilation, run_of
    from regal.torch.planning import planned
    from regal.torch.settings import Settings

    torch.set_num_threads(1)
    model, inputs = made(name)
    model.train(mode == "training")
    twin = copy.deepcopy(model)
    chosen = ["regal"]
    row: dict[str, Any] = {"name": name, "mode": mode, "graphs": [], "torch": torch.__version__}

    class Switched(Compilation):
        def compiled(self, module: Any, role: str) -> Any:
            found_row: dict[str, Any] = {"role": role}
            started = time.process_time()
            found = planned(module, role, self.roles(module, role), self.settings)
            runs = {"regal": run_of(module, found.graph, found.plan)}
            found_row["planning_cpu_s"] = round(time.process_time() - started, 3)
            plain = boxed(module)
            runs["traced"] = plain
            workspace = planned_workspace(found.graph, found.plan.bodies)
            problem = order_problem(found.graph, workspace)
            for rule in PEERS[1:]:
                order = tuple(int(op) for op in np.asarray(inductor_order(problem.native, rule)))
                plan = plan_of_order(
                    found.graph, order, found.plan.bodies, peak_bound=0, place=greedy_by_size
                )
                runs[rule] = run_of(module, found.graph, plan)
                found_row[rule] = plan.peak_bytes
            bound = lower_bound(problem.native)
            found_row |= {
                "ops": len(found.graph.ops),
                "nodes": len(module.graph.nodes),
                "traced": found.before.peak_bytes,
                "regal": found.plan.peak_bytes,
                "bound": bound,
                "in_place": len(found.plan.in_place),
            }
            row["graphs"].append(found_row)

            return callable_of(lambda args: runs[chosen[0]](args))

    def backend(module: Any, args: Any) -> Any:
        return Switched(Settings(cache=False)).captured(module, args)

    compiled = torch.compile(twin, backend=backend)

    def tensors(result: Any) -> list[Any]:
        return [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]

    def step(call: Any, module: Any) -> list[Any]:
        torch.manual_seed(1)
        if mode == "inference":
            with torch.no_grad():
                return tensors(call(*inputs))
        module.zero_grad(set_to_none=True)
        outputs = [leaf for leaf in tensors(call(*inputs)) if leaf.is_floating_point()]
        loss = sum(leaf.float().square().mean() for leaf in outputs)
        loss.backward()
        return [leaf.detach() for leaf in outputs]

    def state(module: Any) -> list[Any]:
        held = [*module.parameters(), *module.buffers()]
        grads = [p.grad for p in module.parameters() if p.grad is not None]
        return [*held, *grads]

    def difference() -> float:
        worst = 0.0
        left, right = step(model, model), step(compiled, twin)
        pairs = [*zip(left, right, strict=True), *zip(state(model), state(twin), strict=True)]
        for a, b in pairs:
            if not torch.equal(a, b):
                scale = float(a.double().abs().max()) or 1.0
                worst = max(worst, float((a.double() - b.double()).abs().max()) / scale, 1e-30)
        return worst

    def peak_of(call: Any, module: Any) -> int:
        if mode == "training":
            module.zero_grad(set_to_none=True)
        tracker = MemoryTracker()
        with tracker:
            step(call, module)
        return tracker.peak_bytes

    heap = Heap()

    def heap_of(call: Any, module: Any) -> int:
        if mode == "training":
            module.zero_grad(set_to_none=True)
        return heap.peak_of(lambda: step(call, module))

    started = time.process_time()
    row["differences"] = [difference() for _ in range(2)]
    row["first_two_steps_cpu_s"] = round(time.process_time() - started, 1)
    row["eager_peak"] = peak_of(model, model)
    row["peaks"], row["heap"] = {}, {}
    for which in ("regal", *PEERS):
        chosen[0] = which
        step(compiled, twin)
        row["peaks"][which] = peak_of(compiled, twin)
        if heap.library is not None and which in ("regal", "traced"):
            row["heap"][which] = heap_of(compiled, twin)
    if heap.library is not None:
        row["eager_heap"] = heap_of(model, model)
    calls = {"eager": (model, model), "traced": (compiled, twin), "regal": (compiled, twin)}
    times: dict[str, list[float]] = {key: [] for key in calls}
    for _ in range(REPEATS):
        for key, (call, module) in calls.items():
            chosen[0] = key
            started = time.process_time()
            step(call, module)
            times[key].append(time.process_time() - started)
    row["cpu_s"] = {key: round(statistics.median(values), 6) for key, values in times.items()}
    row["breaks"] = len(row["graphs"]) - (2 if mode == "training" else 1)
    return row


def line_of(row: dict[str, Any]) -> str:
    head = f"{row['name']:36} {row['mode']:9}"
    if "failed" in row:
        return f"{head} FAILED {row['failed']}"
    peaks = row["peaks"]
    best = min(peaks[rule] for rule in PEERS[1:])
    times = row["cpu_s"]
    ops = sum(graph["ops"] for graph in row["graphs"])
    worst = max(row["differences"])
    return (
        f"{head} {ops:6} ops  eager {row['eager_peak'] / 1e6:9.3f}  traced"
        f" {peaks['traced'] / 1e6:9.3f}  inductor {best / 1e6:9.3f}  regal"
        f" {peaks['regal'] / 1e6:9.3f} MB ({peaks['regal'] / row['eager_peak'] - 1:+7.1%})"
        f"  time {times['regal'] / times['eager']:5.2f}x"
        f"  {'equal' if worst == 0 else f'differs by {worst:.1e}'}"
    )


def table(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(line_of(row))
    for mode in MODES:
        good = [row for row in rows if row["mode"] == mode and "failed" not in row]
        if not good:
            continue
        ratios = [row["peaks"]["regal"] / row["eager_peak"] for row in good]
        peers = [
            row["peaks"]["regal"] / min(row["peaks"][rule] for rule in PEERS[1:]) for row in good
        ]
        times = [row["cpu_s"]["regal"] / row["cpu_s"]["eager"] for row in good]
        print(
            f"{mode}: {len(good)} of {sum(row['mode'] == mode for row in rows)} ran,"
            f" {sum(max(row['differences']) == 0 for row in good)} bit for bit equal;"
            f" peak {statistics.geometric_mean(ratios) - 1:+.1%} against eager"
            f" (above it: {sum(ratio > 1 for ratio in ratios)}),"
            f" {statistics.geometric_mean(peers) - 1:+.1%} against the best of Inductor's orders"
            f" (above it: {sum(ratio > 1 for ratio in peers)});"
            f" time {statistics.geometric_mean(times):.2f}x eager"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--one", nargs=2, metavar=("NAME", "MODE"))
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(*arguments.one)))
        return
    if not arguments.table:
        wanted = [name for name in names() if arguments.only in name]
        collect("benchmarks.torch_models", wanted, arguments.rows, measured, line_of, TIMEOUT_S)
    table(read(arguments.rows))


if __name__ == "__main__":
    main()
