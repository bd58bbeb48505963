"""A validation as JSON and as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regal.validation.agreement import Agreement
    from regal.validation.types import Measured, Validation

SCHEMA = "regal.validation/1"


def validation_to_dict(found: Validation) -> dict[str, Any]:
    """Return the JSON object that `regal validate --json` prints."""
    return {
        "schema": SCHEMA,
        "model": found.model,
        "framework": found.framework,
        "devices": found.system,
        "executor": found.executor,
        "sources": dict(found.sources),
        "time": _agreement_to_dict(found.time),
        "memory": _agreement_to_dict(found.memory),
        "ops": _ops_to_dict(found.ops),
        "plans": [
            {
                "plan": trial.plan,
                "predicted": {"time_ns": trial.time_ns, "peak_bytes": trial.peak_bytes},
                "measured": _measured_to_dict(trial.measured),
            }
            for trial in found.trials
        ],
        "repeated": [_measured_to_dict(measured) for measured in found.repeated],
        "notes": list(found.notes),
    }


def validation_text(found: Validation) -> str:
    """Return the lines of `regal validate`."""
    sources = ", ".join(f"{source} {count}" for source, count in found.sources.items())
    lines = [
        f"model         {found.model} ({found.framework}), predicted for {found.system}",
        f"executed by   {found.executor}",
        f"op times      from {sources}",
        f"{'plan':<16}{'predicted us':>14}{'measured us':>14}{'planned B':>16}{'measured B':>16}",
    ]
    for trial in found.trials:
        measured = trial.measured
        end = measured.failure or (
            f"{_us(measured.time_ns):>14}{trial.peak_bytes:>16,}{_bytes(measured.peak_bytes):>16}"
        )
        lines.append(f"{trial.plan:<16}{_us(trial.time_ns):>14}{end}")
    lines += [
        f"time          {_agreement_text(found.time, 'us', 1e-3)}",
        f"memory        {_agreement_text(found.memory, 'B', 1)}",
        f"ops           {_ops_text(found.ops)}",
    ]
    return "\n".join([*lines, *(f"note          {note}" for note in found.notes)])


def _agreement_to_dict(found: Agreement | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "count": found.count,
        "spearman": _rounded(found.spearman),
        "kendall": _rounded(found.kendall),
        "kendall_above_noise": _rounded(found.kendall_above_noise),
        "top1_regret": _rounded(found.regret),
        "mape": _rounded(found.mape),
        "noise": found.noise,
        "spread": found.spread,
        "distinct_predictions": found.distinct_predictions,
        "is_measurable": found.is_measurable,
    }


def _ops_to_dict(found: Agreement | None) -> dict[str, Any] | None:
    """Return what makes sense of ops: nobody picks the fastest one of them."""
    document = _agreement_to_dict(found)
    if document is not None:
        for key in ("top1_regret", "noise", "kendall_above_noise", "is_measurable"):
            del document[key]
    return document


def _measured_to_dict(measured: Measured) -> dict[str, Any]:
    return {
        "time_ns": measured.time_ns,
        "peak_bytes": measured.peak_bytes,
        "failure": measured.failure or None,
    }


def _agreement_text(found: Agreement | None, unit: str, scale: float) -> str:
    if found is None:
        return "not measured"
    ranks = _ranks_text(found)
    if found.spearman is not None and found.kendall_above_noise != found.kendall:
        ranks += f" ({_number(found.kendall_above_noise)} above the noise)"
    parts = [ranks, f"top-1 regret {100 * found.regret:.2f} %", f"MAPE {100 * found.mape:.1f} %"]
    if found.noise or not found.is_measurable:
        parts.append(
            f"noise floor {found.noise * scale:,.0f} {unit} of a spread of"
            f" {found.spread * scale:,.0f} {unit}"
        )
    if not found.is_measurable:
        parts.append("plans differ less than runs of one")
    return "; ".join(parts)


def _ops_text(found: Agreement | None) -> str:
    if found is None:
        return "not measured"
    return f"{_ranks_text(found)}; MAPE {100 * found.mape:.1f} % ({found.count} ops)"


def _ranks_text(found: Agreement) -> str:
    if found.distinct_predictions == 1:
        return "all are predicted equal"
    if found.spearman is None:
        return "all were measured equal"
    return f"Spearman {found.spearman:.3f}, Kendall {_number(found.kendall)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _us(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1000:,.1f}"


def _bytes(size: int | None) -> str:
    return "-" if size is None else f"{size:,}"
