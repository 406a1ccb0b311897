"""Triton source of the kernel that compares products (imported only if Triton is installed)."""

import triton
import triton.language as tl

CHANGING = ["num_rows", "num_tiles", "first_word", "num_words"]
"""Sizes that change between blocks. Triton would compile the kernel for each kind of them."""


@triton.jit(do_not_specialize=CHANGING)
def compare_kernel(
    dots,
    rows,
    columns,
    counts,
    words,
    num_rows,
    num_columns,
    num_tiles,
    first_word,
    num_words,
    scale,
    rounding,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    WORD: tl.constexpr,
):
    """Count the pairs that are certainly better, and mark the undecided ones; a program per tile.

    ``rows`` and ``columns`` contain the numbers of ``Margins`` for this block. ``counts`` gets the
    numbers of better and of undecided pairs of each row and tile, and ``words`` one bit for each
    undecided pair.
    """
    tile = tl.program_id(0)
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = tile * TILE + tl.arange(0, TILE)
    is_row, is_column = row < num_rows, column < num_columns
    inside = is_row[:, None] & is_column[None, :]
    dot = tl.load(dots + row[:, None] * num_columns + column[None, :], mask=inside, other=0.0)
    middle = tl.load(rows + row, mask=is_row, other=0.0)
    of_length = tl.load(rows + num_rows + row, mask=is_row, other=0.0)
    of_error = tl.load(rows + 2 * num_rows + row, mask=is_row, other=0.0)
    constant = tl.load(rows + 3 * num_rows + row, mask=is_row, other=0.0)
    offset = tl.load(columns + column, mask=is_column, other=0.0)
    length = tl.load(columns + num_columns + column, mask=is_column, other=0.0)
    error = tl.load(columns + 2 * num_columns + column, mask=is_column, other=0.0)

    gap = scale * dot - offset[None, :] - middle[:, None]
    margin = of_length[:, None] * length[None, :] + of_error[:, None] * error[None, :]
    margin += constant[:, None] + (rounding * tl.abs(offset))[None, :]
    better = tl.sum((inside & (gap > margin)).to(tl.int32), axis=1)
    is_open = (inside & (tl.abs(gap) <= margin)).to(tl.int32)
    undecided = tl.sum(is_open, axis=1)
    tl.store(counts + row * num_tiles + tile, better, mask=is_row)
    tl.store(counts + (num_rows + row) * num_tiles + tile, undecided, mask=is_row)
    if tl.sum(undecided, axis=0) > 0:
        bits = is_open << (tl.arange(0, TILE) % WORD)[None, :]
        packed = tl.sum(tl.reshape(bits, (ROWS, TILE // WORD, WORD)), axis=2)
        word = first_word + tile * (TILE // WORD) + tl.arange(0, TILE // WORD)
        is_word = is_row[:, None] & (word < num_words)[None, :]
        tl.store(words + row[:, None] * num_words + word[None, :], packed, mask=is_word)
