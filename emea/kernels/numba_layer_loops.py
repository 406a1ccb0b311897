"""Compiled CPU loops over edges and pairs of training steps.

The loops release the interpreter lock, so threads can run them on disjoint ranges. Sums may be
reordered for SIMD instructions, but NaN and infinite values propagate as usual.
"""

import math

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from emea.kernels.numba_score_loops import compiled

TWO = np.float32(2)  # a Python number would turn a product into double precision

AHEAD = 4
"""Edges between the request for a row and its use. Rows of large graphs are not in the cache."""

FLOATS_PER_LINE = 16
"""Single-precision numbers in a cache line."""


@intrinsic
def prefetch(typing_context, array, row, column):
    """Request an element of a matrix for the cache, without waiting for it."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        matrix = context.make_array(kind)(context, builder, arguments[0])
        strides, shape = (
            cgutils.unpack_tuple(builder, part, 2)
            for part in (matrix.strides, matrix.shape)
        )
        places = [
            builder.sext(value, ir.IntType(64)) if value.type.width < 64 else value
            for value in arguments[1:]
        ]
        item = cgutils.get_item_pointer2(
            context, builder, matrix.data, shape, strides, kind.layout, places
        )
        byte = builder.bitcast(item, ir.IntType(8).as_pointer())
        numbers = [ir.IntType(32)] * 3
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte.type, *numbers]),
            "llvm.prefetch.p0",
        )
        # read, keep in all caches, data
        builder.call(
            function,
            [
                byte,
                *(kind(value) for kind, value in zip(numbers, (0, 3, 1), strict=True)),
            ],
        )
        return context.get_dummy_value()

    return types.void(array, row, column), generate


@compiled
def attend(
    begin,
    end,
    starts,
    cols,
    sets,
    features,
    reflectors,
    dots,
    is_relu,
    along,
    attention,
    out,
    activated,
):
    """Compute ``n.r``, the attention and the sum of messages for the rows from begin to end.

    ``dots`` contains ``features @ w``, ``reflectors @ w`` and ``reflectors @ v``. The activation
    is a ReLU or the hyperbolic tangent.
    """
    by_feature, by_reflector, by_relation = dots
    dim = features.shape[1]
    for i in range(begin, end):
        first, last = starts[i], starts[i + 1]
        for x in range(dim):
            out[i, x] = 0
        peak = np.float32(-np.inf)
        for edge in range(first, last):
            if edge + AHEAD < len(cols):
                ahead = cols[edge + AHEAD]
                for x in range(0, dim, FLOATS_PER_LINE):
                    prefetch(features, ahead, x)
            j, s = cols[edge], sets[edge]
            dot = np.float32(0)
            for x in range(dim):
                dot += features[j, x] * reflectors[s, x]
            along[edge] = dot
            logit = by_feature[j] - TWO * dot * by_reflector[s] + by_relation[s]
            attention[edge] = logit
            # written so that a NaN becomes the peak and propagates
            peak = peak if peak > logit else logit
        total = np.float32(0)
        for edge in range(first, last):
            weight = np.float32(math.exp(attention[edge] - peak))
            attention[edge] = weight
            total += weight
        for edge in range(first, last):
            j, s = cols[edge], sets[edge]
            weight = attention[edge] / total
            attention[edge] = weight
            reflected = -TWO * weight * along[edge]
            for x in range(dim):
                out[i, x] += weight * features[j, x] + reflected * reflectors[s, x]
        if is_relu:
            for x in range(dim):
                # written so that a NaN propagates
                activated[i, x] = np.float32(0) if out[i, x] <= 0 else out[i, x]
        else:
            for x in range(dim):
                activated[i, x] = math.tanh(out[i, x])


@compiled
def through_activation(begin, end, activated, out, is_relu, active, grad, dots):
    """Turn gradients of activated rows into those of rows, and compute ``grad . out``.

    Only active rows have a gradient; the others are not written.
    """
    for i in range(begin, end):
        if not active[i]:
            continue
        total = np.float32(0)
        for x in range(out.shape[1]):
            value = activated[i, x]
            slope = np.float32(value > 0) if is_relu else np.float32(1) - value * value
            grad[i, x] *= slope
            total += grad[i, x] * out[i, x]
        dots[i] = total


@compiled
def attend_backward(
    begin,
    end,
    starts,
    rows,
    edges,
    sets,
    features,
    reflectors,
    by_neighbour,
    by_reflector,
    along,
    attention,
    active,
    grad,
    grad_dot_out,
    reached,
    of_features,
    of_reflectors,
    of_kernel,
    set_sums,
):
    """Compute gradients for the neighbours from begin to end.

    Edges are visited by neighbour; ``rows`` and ``edges`` have the order of the transposed pattern.
    Edges of rows that are not active have no gradient. Neighbours of active rows become reached.
    The gradients are added to ``of_features``, ``of_reflectors`` and, for w in
    ``features @ w``, ``of_kernel``. Those of ``reflectors @ w`` and ``reflectors @ v`` are added to
    ``set_sums``.
    """
    dim = features.shape[1]
    for j in range(begin, end):
        sum_logits = np.float32(0)
        is_reached = False
        for place in range(starts[j], starts[j + 1]):
            if place + AHEAD < len(rows):
                ahead = rows[place + AHEAD]
                if active[ahead]:
                    for x in range(0, dim, FLOATS_PER_LINE):
                        prefetch(grad, ahead, x)
            i = rows[place]
            if not active[i]:
                continue
            is_reached = True
            edge = edges[place]
            s = sets[edge]
            to_neighbour, to_reflector = np.float32(0), np.float32(0)
            for x in range(dim):
                to_neighbour += grad[i, x] * features[j, x]
                to_reflector += grad[i, x] * reflectors[s, x]
            weight, dot = attention[edge], along[edge]
            of_logit = weight * (
                to_neighbour - TWO * dot * to_reflector - grad_dot_out[i]
            )
            of_dot = -TWO * (weight * to_reflector + of_logit * by_reflector[s])
            reflected = -TWO * weight * dot
            for x in range(dim):
                of_features[j, x] += weight * grad[i, x] + of_dot * reflectors[s, x]
                of_reflectors[s, x] += reflected * grad[i, x] + of_dot * features[j, x]
            sum_logits += of_logit
            set_sums[0, s] -= TWO * dot * of_logit
            set_sums[1, s] += of_logit
        if is_reached:
            reached[j] = True
            for x in range(dim):
                of_features[j, x] += sum_logits * by_neighbour[x]
            for x in range(dim):
                of_kernel[x] += sum_logits * features[j, x]


@compiled
def pair_distances(begin, end, rows, first, second, out):
    """Compute the Manhattan distances of the pairs from begin to end."""
    for pair in range(begin, end):
        a, b = first[pair], second[pair]
        total = np.float32(0)
        for x in range(rows.shape[1]):
            total += abs(rows[a, x] - rows[b, x])
        out[pair] = total


@compiled
def pair_distances_backward(begin, end, rows, first, second, grad, out):
    """Add up the gradient of Manhattan distances for the columns from begin to end."""
    for pair in range(len(first)):
        weight = grad[pair]
        if weight != 0:
            a, b = first[pair], second[pair]
            # slices, because an index that could be negative prevents SIMD instructions
            left, right = rows[a, begin:end], rows[b, begin:end]
            of_left, of_right = out[a, begin:end], out[b, begin:end]
            for x in range(end - begin):
                apart = left[x] - right[x]
                step = weight * (np.float32(apart > 0) - np.float32(apart < 0))
                of_left[x] += step
                of_right[x] -= step


@compiled
def dropped_copy(begin, end, parts, wide, random, last_kept, scale):
    """Copy matrices to columns of a wide one, and drop elements by their random byte."""
    dim = parts.shape[2]
    for number in range(len(parts)):
        part, first, last = parts[number], number * dim, (number + 1) * dim
        for row in range(begin, end):
            byte = random[row, first:last]
            inner, outer = part[row], wide[row, first:last]
            for x in range(dim):
                # multiplied before the choice, because a branch prevents SIMD instructions
                scaled = inner[x] * scale
                outer[x] = scaled if byte[x] <= last_kept else np.float32(0)


@compiled
def dropped_copy_backward(begin, end, wide, random, last_kept, scale, parts, active):
    """Compute the gradient of the copied matrices, and mark the rows that have one."""
    dim = parts.shape[2]
    for row in range(begin, end):
        whole = wide[row]
        is_active = False
        for x in range(len(whole)):
            is_active |= whole[x] != 0
        active[row] = is_active
    for number in range(len(parts)):
        part, first, last = parts[number], number * dim, (number + 1) * dim
        for row in range(begin, end):
            inner = part[row]
            if not active[row]:
                inner[:] = 0
                continue
            byte, outer = random[row, first:last], wide[row, first:last]
            for x in range(dim):
                scaled = outer[x] * scale
                inner[x] = scaled if byte[x] <= last_kept else np.float32(0)
