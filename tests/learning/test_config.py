"""Configurations: TOML with overrides; every wrong key or value is told in one line."""

from pathlib import Path

import pytest

from regal.errors import UsageError
from regal.learning.config import config_of, config_to_dict, read_config

TEXT = """
policy = "paper"
[data]
objectives = ["memory", "time"]
[learner]
learning_rate = 1
[trainer]
iterations = 7
"""


def written(tmp_path: Path, text: str = TEXT) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_a_file_sets_what_it_names_and_the_rest_keeps_its_default(tmp_path: Path) -> None:
    config = read_config(written(tmp_path))
    assert config.data.objectives == ("memory", "time")
    assert config.trainer.iterations == 7
    assert config.learner.learning_rate == 1.0
    assert config.trainer.samples == config_of({}).trainer.samples


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    overrides = [
        "trainer.iterations=9",
        "learner.algorithm=reinforce",
        'data.devices=["2", "4"]',
        "data.objectives=balanced",
    ]
    config = read_config(written(tmp_path), overrides)
    assert config.trainer.iterations == 9
    assert config.learner.algorithm == "reinforce"
    assert config.data.devices == ("2", "4")
    assert config.data.objectives == ("balanced",)


def test_a_configuration_survives_its_dictionary(tmp_path: Path) -> None:
    config = read_config(written(tmp_path))
    table = config_to_dict(config)
    table["data"]["objectives"] = list(table["data"]["objectives"])
    table["data"]["devices"] = list(table["data"]["devices"])
    assert config_of(table) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.iteration=9", "unknown key 'trainer.iteration'; known: "),
        ("nothing.at.all=1", "unknown key 'nothing'"),
        ("trainer.iterations=many", "'trainer.iterations' is 'many'; give a whole number"),
        ("trainer.iterations=-1", "'trainer.iterations' is -1; give 0 or more"),
        ("trainer.tasks=0", "'trainer.tasks' is 0; give 1 or more"),
        ("trainer.samples=0", "'trainer.samples' is 0; give 1 or more"),
        ("trainer.valid_every=0", "'trainer.valid_every' is 0; give 1 or more"),
        ("trainer.checkpoint_every=0", "'trainer.checkpoint_every' is 0; give 1 or more"),
        ("trainer.seed=-1", "'trainer.seed' is -1; give 0 or more"),
        (f"trainer.seed={2**64}", f"is {2**64}; give 0 or more, at most {2**62}"),
        ("trainer.correlation=-1", "'trainer.correlation' is -1.0; give 0 to 1"),
        ("network.hidden=0", "'network.hidden' is 0; give 1 or more"),
        ("search.seeds=0", "'search.seeds' is 0; give 1 or more"),
        ("search.valid_seeds=0", "'search.valid_seeds' is 0; give 1 or more"),
        ("learner.learning_rate=nan", "'learner.learning_rate' is nan; give 0 to 1"),
        ("learner.learning_rate=1e300", "'learner.learning_rate' is 1e+300; give 0 to 1"),
        ("learner.clip=nan", "'learner.clip' is nan; give 0 or more"),
        ("learner.least_deviation=-1", "'learner.least_deviation' is -1.0; give 0 or more"),
        ("learner.entropy=inf", "'learner.entropy' is inf; give 0 or more"),
        (f"learner.entropy={10**400}", "'learner.entropy' is 1000"),
        ("trainer=3", "'trainer' is a table"),
        ("policy.deep=3", "'policy' is not a table"),
        ("learner.algorithm=magic", "unknown algorithm 'magic'; known: reinforce, off-policy"),
        ("actors.kind=cloud", "actors.kind is 'cloud'"),
        ("actors.count=0", "give 1 or more"),
        ("data.objectives=speed", "unknown 'speed'"),
        ("data.objectives=[]", "at least one"),
        ("learner.replay_batch=0", "replay_batch is 0"),
        ("learner.deviation=0", "deviation is 0.0; give more than 0"),
        ("no sign", "is not KEY=VALUE"),
    ],
)
def test_a_wrong_override_is_told_in_one_line(tmp_path: Path, override: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_config(written(tmp_path), [override])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_evolution_does_not_imitate(tmp_path: Path) -> None:
    path = written(tmp_path, '[learner]\nalgorithm = "es"\nimitation = 0.1')
    with pytest.raises(UsageError, match="set imitation = 0"):
        read_config(path)
    read_config(path, ["learner.imitation=0"])


def test_a_file_that_is_missing_or_no_toml_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config '.*' does not exist"):
        read_config(tmp_path / "absent.toml")
    with pytest.raises(UsageError, match=r"config '.*' is not a file"):
        read_config(tmp_path)
    for text in ("a = = 1", "a = " + 10_000 * "["):
        with pytest.raises(UsageError, match=r"config '.*' is not TOML"):
            read_config(written(tmp_path, text))


def test_an_override_that_is_nested_too_deep_is_a_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'trainer.iterations' is '\[\["):
        read_config(written(tmp_path), ["trainer.iterations=" + 10_000 * "["])
