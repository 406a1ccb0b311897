"""Names of runs, which start with the settings that differ within a sweep."""

from collections.abc import Mapping, Sequence
from itertools import chain

from emea.record.run_record import ParamValue

Params = Mapping[str, ParamValue]

SHORT = {"em.num_candidates": "K"}
"""Names that are shorter than the last part of a key."""

USUAL = {"training": "sup", "em": "paper", "rule": "paris", "protocol": "strict"}
"""Options that a name only mentions if they were swept."""

FIRST, LAST = ("data", "ratio", "split"), ("split_seed", "seed")
"""Settings at the beginning and at the end of a name, in this order."""


def run_name(params: Params, swept: Mapping[str, str] | None = None) -> str:
    """Return the name of a run, such as ``zh 5% K=5 avoid_conflict rrea s0``.

    Settings that were swept come first, so that a truncated column still shows what differs. Model,
    method and unusual options follow.

    Args:
        params: The flat parameters of the run.
        swept: Values of the settings that differ within its sweep, by key.
    """
    swept = {_group_of(key): value for key, value in (swept or {}).items()}
    differing = [_text(key, params, swept) for key in _ordered(swept)]
    constant = [
        _text(key, params, swept)
        for key in _ordered(["data", "ratio", *_described(params), "split_seed", "seed"])
        if key not in swept and not (key == "seed" and not params.get("seed"))
    ]
    return " ".join(dict.fromkeys(filter(None, [*differing, *constant])))


def swept_values(runs: Sequence[Params]) -> list[dict[str, str]]:
    """Return, for each run, the settings that differ between the runs.

    A setting that only follows from the option of its group, such as a learning rate that differs
    because the model does, is left out.
    """
    keys = list(dict.fromkeys(chain.from_iterable(runs)))
    varying = [key for key in keys if _varies(key, runs)]
    return [{key: str(run[key]) for key in varying if run.get(key) is not None} for run in runs]


def _varies(key: str, runs: Sequence[Params]) -> bool:
    """Return whether runs that chose the same option of the key's group have different values."""
    group = f"{key.partition('.')[0]}.name"
    by_option: dict[object, set[str]] = {}
    for run in runs:
        if key in run:
            option = None if key == group else run.get(group)
            by_option.setdefault(option, set()).add(str(run[key]))
    return any(len(values) > 1 for values in by_option.values())


def _described(params: Params) -> list[str]:
    """Return the groups that describe the method of a run, without those that it does not use."""
    method, uses = params.get("method.name"), params.get("method.uses")
    groups = [] if method in (None, "emea") else ["method"]
    for group in ("model", "training", "em", "rule", "protocol"):
        option = params.get(f"{group}.name")
        is_used = uses is None or group == "protocol" or f"'{group}'" in str(uses)
        if option is not None and is_used and option != USUAL.get(group):
            groups.append(group)
    # without EM there is nothing to reason with
    return [group for group in groups if group != "rule" or params.get("em.iterations") != 0]


def _ordered(keys: Mapping[str, str] | list[str]) -> list[str]:
    between = [key for key in keys if key not in (*FIRST, *LAST)]
    return [
        *(key for key in FIRST if key in keys),
        *between,
        *(key for key in LAST if key in keys),
    ]


def _group_of(key: str) -> str:
    """Return the group for ``GROUP.name`` and ``ratio.value``, and any other key unchanged."""
    group, _, rest = key.partition(".")
    return group if rest == "name" or key == "ratio.value" else key


def _text(key: str, params: Params, swept: Mapping[str, str]) -> str:
    """Return the part of a run's name that describes one setting."""
    value = params.get(key, params.get(f"{key}.name", swept.get(key, "")))
    if key == "data":
        return str(value).removeprefix("dbp15k_")
    if key == "ratio":
        return _share(params)
    if key == "split":
        return "" if params.get("split.name") == "random" and "ratio" in swept else _share(params)
    if key in LAST:
        return f"{'s' if key == 'split_seed' else 'seed'}{value}"
    if "." not in key:
        return f"no {'EM' if key == 'em' else key}" if value == "none" else str(value)
    last = key.rpartition(".")[2]
    is_unique = sum(other.rpartition(".")[2] == last for other in swept) < 2
    return f"{SHORT.get(key, last if is_unique else key)}={value}"


def _share(params: Params) -> str:
    """Return the share of training links of a random split, or the name of another split."""
    ratio = params.get("ratio.value")
    if params.get("split.name", "random") != "random" or not isinstance(ratio, int | float):
        return str(params.get("split.name", ""))
    return f"{100 * ratio:.4g}%"
