"""Operations that have faster forms: torch's operations first, then numba and Triton.

A module that is named after an operation has its form with torch's operations, which is the
specification, and the function that callers use. `choice` decides which form runs.
Modules whose names begin with ``numba_`` or ``triton_`` have the compiled forms. Only this package
imports them.
"""
