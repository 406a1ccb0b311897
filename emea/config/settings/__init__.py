"""All settings of a run: type, default, allowed values, source and help text.

This package is the only home of a default. Everything else is derived from it: the options in
``conf/`` inherit from it, ``emea.config`` checks values against it, ``emea run --help`` and
``docs/configuration.md`` print it, and reports read the usual values from it.

To add a setting to an option:

1. Add a field to the dataclass of that option, with ``setting(default, help, ...)``. The annotation
   is the type, and ``| None`` allows null. Numbers need a ``Range``, words a tuple of choices.
2. Read it where it is used. The argument of a constructor has no default (a test checks this).
3. Run ``python docs/configuration_page.py > docs/configuration.md``.

To add an option, write ``conf/<group>/<option>.yaml``. It inherits a dataclass with
``defaults: [schema_<name>]`` and then sets ``name``, ``_target_`` and what differs. A new dataclass
is listed in ``emea/config/settings/groups.py``.
"""
