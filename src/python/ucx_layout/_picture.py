"""The picture of a layout: memory above, a row for each source; the window below; a band from each block to its place.

Every piece of a row, a block or a gap, is as wide as it is long, but has at least a few pixels, and a long one is cut
to a multiple of the shortest; so a picture shows the order, and the axes the bytes.
"""
from ._core import Layout

_BLOCKS, _WIDTH, _ROW, _GAP = 24, 900.0, 24, 70
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#666666")


def _places(edges: "list[int]") -> "dict[int, float]":
    """Where the edges of pieces are on a row."""
    lengths = [end - begin for begin, end in zip(edges, edges[1:])]
    shown = [min(length, 8 * min(lengths)) for length in lengths]
    width = max(1, sum(shown))
    free = _WIDTH - 3.0 * len(shown)
    places, at = {}, 0.0
    for edge, length in zip(edges, [*shown, 0]):
        places[edge] = at
        at += 3.0 + length / width * free
    return places


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{text}</text>'


def svg(layout: Layout) -> str:
    """The text of the picture."""
    blocks = layout.blocks(_BLOCKS)
    sources = sorted({source for source, _, _ in blocks})
    starts = [0]
    for _, _, length in blocks:
        starts.append(starts[-1] + length)
    rows = {source: _places(sorted({edge for of, offset, length in blocks if of == source
                                    for edge in (offset, offset + length)})) for source in sources}
    window, bottom = _places(starts), 40 + (_ROW + _GAP) * max(1, len(sources))
    shapes = [_text(0, 14, f"{layout.packed_length} bytes in {layout.num_blocks} blocks")]
    for number, source in enumerate(sources):
        top = 40 + (_ROW + _GAP) * number
        shapes.append(f'<rect x="0" y="{top}" width="{_WIDTH}" height="{_ROW}" fill="#eeeeee"/>')
        shapes.append(_text(0, top - 4, f"source {source}, byte {min(rows[source])}"))
        shapes.append(_text(_WIDTH, top - 4, str(max(rows[source])), "end"))
    for (source, offset, length), start in zip(blocks, starts):
        top, colour = 40 + (_ROW + _GAP) * sources.index(source), _COLOURS[source % len(_COLOURS)]
        left, right = rows[source][offset], rows[source][offset + length]
        from_, to = window[start], window[start + length]
        hint = f"<title>{length} bytes at offset {offset} of source {source}, byte {start} of the window</title>"
        shapes.append(f'<path d="M{left:.1f} {top + _ROW}L{right:.1f} {top + _ROW}L{to:.1f} {bottom}L{from_:.1f} '
                      f'{bottom}Z" fill="{colour}" fill-opacity="0.2"/>')
        for x, end, y in ((left, right, top), (from_, to, bottom)):
            shapes.append(f'<rect class="block" x="{x:.1f}" y="{y}" width="{end - x:.1f}" height="{_ROW}" '
                          f'fill="{colour}" stroke="white">{hint}</rect>')
    shapes.append(_text(0, bottom + _ROW + 14, "window"))
    if layout.num_blocks > len(blocks):
        shapes.append(_text(_WIDTH, bottom + _ROW + 14, f"and {layout.num_blocks - len(blocks)} more blocks", "end"))
    height = bottom + _ROW + 20
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 0 {_WIDTH + 8:.0f} {height}" width="{_WIDTH:.0f}" '
            'font-family="sans-serif" font-size="12">' + "".join(shapes) + "</svg>")
