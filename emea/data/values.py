"""Normalises the values of literals, so that different spellings of a value become equal.

The steps, in this order:

1. Unicode NFKC, then case folding. White space is collapsed to single spaces and trimmed.
2. A date or a time (``xsd:date``, ``xsd:dateTime``, or text of that form) becomes ``YYYY-MM-DD``.
3. A number becomes its shortest decimal form: ``1.50``, ``+1.5`` and ``1.5E0`` become ``1.5``. Text
   with a leading zero, such as a postal code, stays text unless its datatype is numeric.
4. A telephone-like code, at least seven digits with separators between them, keeps its digits only.
5. Apostrophes are removed, other punctuation becomes a space: ``St. John's`` becomes ``st johns``.

Symbols such as ``+`` and ``#`` stay: *C++* is not *C#*.
"""

import re
import unicodedata
from decimal import Decimal, InvalidOperation

from emea.data.attributes import PLAIN, AttributeTriples, Kind

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMERIC = frozenset(
    XSD + name
    for name in (
        *("integer", "int", "long", "short", "byte", "decimal", "double", "float"),
        *("nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong"),
        *("unsignedShort", "unsignedByte", "negativeInteger", "nonPositiveInteger"),
    )
)

_DATE = re.compile(
    r"(-?\d{4,})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"(?:[ t]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:z|[+-]\d\d:\d\d)?"
)
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d{1,3})?")
_TYPED_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?")
_CODE = re.compile(r"\+?[\d(][\d\s()./\-]*\d")
_SEPARATORS = re.compile(r"\D+")
_APOSTROPHES = re.compile("['`\u00b4\u02bc\u2018\u2019]")
_PUNCTUATION = re.compile(
    '[\\s.,;:!?"()\\[\\]{}/\\\\_\\-\u2010-\u2015\u00ab\u00bb\u201c-\u201e\u2026\u00b7\u2022'
    "\u3001\u3002\u30fb\u300c-\u300f]+"
)
LEAST_CODE_DIGITS = 7


def normalised_value(text: str, kind: Kind = PLAIN) -> str:
    """Return the normal form of a literal, which is empty if the text is only punctuation.

    Args:
        text: The lexical form of the literal.
        kind: Its language and datatype.
    """
    if text.isascii() and text.isalpha():
        return text.lower()
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    if any(map(str.isdigit, folded)):
        found = _date_or_number(folded, kind.datatype in NUMERIC)
        if found is not None:
            return found
    return _PUNCTUATION.sub(" ", _APOSTROPHES.sub("", folded)).strip()


def _date_or_number(text: str, is_numeric: bool) -> str | None:
    """Return the normal form of a date, number or telephone-like code, or ``None``."""
    if (date := _DATE.fullmatch(text)) is not None:
        return "-".join(date.groups())
    if (_TYPED_NUMBER if is_numeric else _NUMBER).fullmatch(text):
        return _decimal(text)
    if _CODE.fullmatch(text):
        digits = _SEPARATORS.sub("", text)
        if len(digits) >= LEAST_CODE_DIGITS:
            return digits
    return None


def _decimal(text: str) -> str:
    try:
        number = format(Decimal(text), "f")
    except InvalidOperation:
        return text
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return "0" if number in ("-0", "") else number.removeprefix("+")


def normalised_values(attributes: AttributeTriples) -> list[str]:
    """Return the normal form of each value."""
    kinds = [attributes.kind_names[kind] for kind in attributes.kinds.tolist()]
    return list(map(normalised_value, attributes.values, kinds))
