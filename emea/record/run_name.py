"""Names of runs, which start with the settings that differ within a sweep."""

from collections.abc import Iterable, Mapping

from emea.record.run_record import ParamValue

Params = Mapping[str, ParamValue]

SHORT = {"em.num_candidates": "K"}
"""Names that are shorter than the last part of a key."""

USUAL = {"training": "sup", "em": "paper", "rule": "paris", "protocol": "strict"}
"""Options that a name only mentions if they were swept."""

PLACES = {"data": -3, "ratio": -2, "split": -1, "split_seed": 1, "seed": 2}
"""Settings at the beginning and at the end of a name; others keep their order between them."""


def run_name(params: Params, swept: Mapping[str, str] | None = None) -> str:
    """Return the name of a run, such as ``zh 5% K=5 avoid_conflict rrea s0``.

    Settings that were swept come first, so that a truncated column still shows what differs. Model,
    method and unusual options follow.

    Args:
        params: The flat parameters of the run.
        swept: Values of the settings that differ within its sweep, by key.
    """
    swept = {_group_of(key): value for key, value in (swept or {}).items()}
    described = ["data", "ratio", *_described(params), "split_seed"]
    described += ["seed"] if params.get("seed") else []
    constant = (key for key in described if key not in swept)
    texts = [_text(key, params, swept) for key in (*_ordered(swept), *_ordered(constant))]
    return " ".join(dict.fromkeys(filter(None, texts)))


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


def _ordered(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: PLACES.get(key, 0))


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
    if key in ("split_seed", "seed"):
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
