"""Place the parts of a drawing in layers from top to bottom, after Sugiyama.

Transitions that lead back are reversed, every state gets the layer below all of its predecessors,
and a transition across layers runs through a bend in each. Between two layers of states lies a
layer of bends with room for the labels. Within a layer, neighbours attract parts. All lengths are
in pixels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import copysign
from typing import TypeAlias

__all__ = ["Box", "Layout", "Link", "place_boxes"]

GAP = 28.0
"""Pixels between two parts of a layer."""
STEP = 16.0
"""Pixels between two layers."""
BESIDE = 22.0
"""Largest distance between forward and backward links of a state."""
SWEEPS = 8
"""How often the layers are ordered and centred, alternately downwards and upwards."""
PULLS, MOST_PULLS = 400_000, 20
"""How many boxes are pulled straight, all together, and each of them at most."""
STRAIGHT = 8
"""Weight of straight bends relative to states."""
MOST_BENDS = 20_000
"""Number of bends beyond which long transitions run straight."""

Point: TypeAlias = tuple[float, float]


@dataclass(slots=True)
class Box:
    """A part of a layer: a state, the start, the end, or the bend of a transition."""

    width: float
    height: float
    x: float = 0.0
    """Horizontal middle."""
    y: float = 0.0
    beside: float = 0.0
    """Room on the right side for a link of the box to itself."""
    layer: int = 0
    room: float = 0.0
    """Height of its layer."""
    bend: bool = False
    above: "list[Box]" = field(default_factory=list)
    below: "list[Box]" = field(default_factory=list)


@dataclass(slots=True)
class Link:
    """A transition between two boxes, by their indices, and the size of its label."""

    source: int
    target: int
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """The size of a drawing, and for each link its points and the position of its label."""

    width: float
    height: float
    ways: tuple[tuple[Point, ...], ...]
    labels: tuple[Point | None, ...]


def place_boxes(boxes: Sequence[Box], links: Sequence[Link]) -> Layout:
    """Place boxes (sets `x` and `y`) and links; the first box is at the top."""
    if not boxes:
        return Layout(0.0, 0.0, (), ())
    forward = _forward(len(boxes), links)
    for link in links:
        if link.source == link.target:
            own = boxes[link.source]
            own.beside = max(own.beside, 2 * GAP + link.width)
    for box, layer in zip(boxes, _layers(len(boxes), links, forward), strict=True):
        box.layer = 2 * layer
    bends = [*_bends(boxes, links, forward)]
    layers = _filled([*boxes, *(bend for each in bends for bend in each)])
    _ordered(layers)
    width = _across(layers)
    height = _down(layers)
    ways = tuple(
        _way(boxes[link.source], boxes[link.target], each)
        for link, each in zip(links, bends, strict=True)
    )
    labels = tuple(
        _label(link, boxes[link.source], boxes[link.target], each)
        for link, each in zip(links, bends, strict=True)
    )
    return Layout(width, height, ways, labels)


def _forward(count: int, links: Sequence[Link]) -> list[bool]:
    """Return for each link whether it leads forward; one that closes a cycle leads back."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, link in enumerate(links):
        leaving[link.source].append(number)
    forward = [True] * len(links)
    state = [0] * count  # 1 while on the way, 2 when done
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(leaving[root]))]
        while stack:
            at, rest = stack[-1]
            number = next(rest, -1)
            if number < 0:
                state[at] = 2
                stack.pop()
                continue
            target = links[number].target
            if state[target] == 1:
                forward[number] = False
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(leaving[target])))
    return forward


def _layers(count: int, links: Sequence[Link], forward: Sequence[bool]) -> list[int]:
    """Return the layer of each box: below all of its predecessors."""
    following: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for link, on in zip(links, forward, strict=True):
        if link.source != link.target:
            source, target = (link.source, link.target) if on else (link.target, link.source)
            following[source].append(target)
            waiting[target] += 1
    layer = [0] * count
    ready = [index for index in range(count) if not waiting[index]]
    for at in ready:
        for target in following[at]:
            layer[target] = max(layer[target], layer[at] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return layer


def _bends(
    boxes: Sequence[Box], links: Sequence[Link], forward: Sequence[bool]
) -> Iterator[list[Box]]:
    """Yield the bends of each link, from its source to its target."""
    left = MOST_BENDS
    for link, on in zip(links, forward, strict=True):
        source, target = boxes[link.source], boxes[link.target]
        top, bottom = (source, target) if on else (target, source)
        chain: list[Box] = []
        between = range(top.layer + 1, bottom.layer)
        if len(between) <= left and top is not bottom:
            left -= len(between)
            middle = between[0] if on and between else between[-1] if between else 0
            for layer in between:
                labelled = layer == middle
                bend = Box(link.width if labelled else 0.0, link.height if labelled else 0.0)
                bend.layer, bend.bend = layer, True
                chain.append(bend)
        for upper, lower in zip([top, *chain], [*chain, bottom], strict=True):
            if upper is not lower:
                upper.below.append(lower)
                lower.above.append(upper)
        yield chain if on else chain[::-1]


def _filled(boxes: Sequence[Box]) -> list[list[Box]]:
    layers: list[list[Box]] = [[] for _ in range(1 + max(box.layer for box in boxes))]
    for box in boxes:
        layers[box.layer].append(box)
    return [layer for layer in layers if layer]


def _ordered(layers: list[list[Box]]) -> None:
    """Sort the boxes of every layer by the middle of their neighbours to reduce crossings."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers:
            for index, box in enumerate(layer):
                box.x = float(index)
        for layer in layers if down else reversed(layers):
            middles = {id(box): _middle(box.above if down else box.below, box.x) for box in layer}
            layer.sort(key=lambda box: middles[id(box)])
            for index, box in enumerate(layer):
                box.x = float(index)


def _middle(neighbours: Sequence[Box], otherwise: float) -> float:
    if not neighbours:
        return otherwise
    return sum(box.x for box in neighbours) / len(neighbours)


def _across(layers: list[list[Box]]) -> float:
    """Place the boxes from left to right; return the total width."""
    for layer in layers:
        edge = 0.0
        for box in layer:
            box.x = edge + box.width / 2
            edge += box.width + GAP
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _pulled(layer, [_centre(box, box.above if down else box.below) for box in layer])
    for sweep in range(min(MOST_PULLS, 1 + PULLS // sum(map(len, layers)))):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _pulled(layer, [_wish(box) for box in layer])
    least = min(box.x - box.width / 2 for layer in layers for box in layer)
    for layer in layers:
        for box in layer:
            box.x -= least
    return max(box.x + box.width / 2 + box.beside for layer in layers for box in layer)


def _centre(box: Box, neighbours: Sequence[Box]) -> float:
    """Return the middle of the neighbours of a box on one side."""
    weights = [_weight(box, each) for each in neighbours]
    if not weights:
        return box.x
    return sum(each.x * by for each, by in zip(neighbours, weights, strict=True)) / sum(weights)


def _wish(box: Box) -> float:
    """Return the position where the pulls to the left and to the right are balanced.

    So a box stays below its predecessor; at the mean of all neighbours it would not.
    """
    near = sorted((each.x, _weight(box, each)) for each in (*box.above, *box.below))
    half = sum(weight for _, weight in near) / 2
    low = high = box.x
    passed = 0
    for x, weight in near:
        if passed < half <= passed + weight:
            low = x
        if passed <= half < passed + weight:
            high = x
        passed += weight
    return min(max(box.x, low), high)


def _weight(box: Box, other: Box) -> int:
    return STRAIGHT if box.bend and other.bend else 2 if box.bend or other.bend else 1


def _pulled(layer: list[Box], wishes: Sequence[float]) -> None:
    """Move the boxes of a layer towards their wishes within their order and widths.

    Boxes that would overlap form a block at the mean of their wishes.
    """
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + left.width / 2 + left.beside + GAP + right.width / 2)
    blocks: list[tuple[float, int]] = []
    for wish, offset in zip(wishes, offsets, strict=True):
        place, count = wish - offset, 1
        while blocks and blocks[-1][0] > place:
            before, more = blocks.pop()
            place, count = (place * count + before * more) / (count + more), count + more
        blocks.append((place, count))
    places = [place for place, count in blocks for _ in range(count)]
    for box, place, offset in zip(layer, places, offsets, strict=True):
        box.x = place + offset


def _down(layers: list[list[Box]]) -> float:
    """Place the layers from top to bottom; return the total height."""
    edge = 0.0
    for layer in layers:
        height = max(box.height for box in layer)
        for box in layer:
            box.y = edge + height / 2
            box.room = height
        edge += height + STEP
    return edge - STEP


def _way(source: Box, target: Box, bends: Sequence[Box]) -> tuple[Point, ...]:
    """Return the points of a link: straight through each layer, from side to side between them."""
    if source is target:  # around its right side
        right, top = source.x + source.width / 2, source.y
        return (
            (right, top - source.height / 4),
            (right + GAP, top),
            (right, top + source.height / 4),
        )
    down = 1 if source.y < target.y else -1
    way = []
    stops = [source, *(bend for bend in bends if bend.room), target]
    for index, stop in enumerate(stops):
        x, before, after = stop.x, -stop.room / 2, stop.room / 2
        if stop is source:
            x, before = x + _aside(source, stops[1], down), source.height / 2
        elif stop is target:
            x, after = x + _aside(target, stops[index - 1], down), -target.height / 2
        way += [(x, stop.y + down * half) for half in dict.fromkeys((before, after))]
    return tuple(way)


def _aside(box: Box, other: Box, down: int) -> float:
    """Return the distance from the middle of a box to the end of a link towards *other*.

    A link that leads back is placed next to the forward ones.
    """
    if down > 0:
        return 0.0
    return copysign(min(box.width / 4, BESIDE), other.x - box.x)


def _label(link: Link, source: Box, target: Box, bends: Sequence[Box]) -> Point | None:
    if not link.width:
        return None
    wide = next((bend for bend in bends if bend.width), None)
    if wide is not None:
        return wide.x, wide.y
    if source is target:
        return source.x + source.width / 2 + 1.5 * GAP + link.width / 2, source.y
    return (source.x + target.x) / 2, (source.y + target.y) / 2
