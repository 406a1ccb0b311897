"""The schemas of all settings as configs that Hydra's options inherit."""

from hydra.core.config_store import ConfigStore

from emea.config.settings.groups import GROUPS
from emea.config.settings.run import RunSettings
from emea.config.settings.setting import defaults_of


def register_schema() -> None:
    """Store the defaults of all settings in Hydra's ConfigStore, once in each process.

    They are stored as plain values: `emea.config.checks` checks them, in clearer words than
    OmegaConf, and users can add settings for their own classes.
    """
    store = ConfigStore.instance()
    if "schema.yaml" in store.repo:
        return
    store.store(name="schema", node=defaults_of(RunSettings))
    for group, declared in GROUPS.items():
        for name, schema in declared.schemas.items():
            store.store(name=f"schema_{name}", group=group, node=defaults_of(schema))
