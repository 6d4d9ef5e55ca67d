export interface Layout {
  columns: number;
  tileWidth: number;
  tileHeight: number;
}

/** Between upright and wide: a tile is never narrower or wider than that, whatever room there is. */
const ASPECT_MIN = 3 / 4;
const ASPECT_MAX = 16 / 9;

/** The number of columns that makes the tiles largest. */
export function layOut(count: number, { width, height, gap }: { width: number; height: number; gap: number }): Layout {
  let best: Layout = { columns: 1, tileWidth: 0, tileHeight: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const cellWidth = Math.max(0, (width - gap * (columns - 1)) / columns);
    const cellHeight = Math.max(0, (height - gap * (rows - 1)) / rows);
    const tileWidth = Math.min(cellWidth, cellHeight * ASPECT_MAX);
    const tileHeight = Math.min(cellHeight, tileWidth / ASPECT_MIN);
    if (tileWidth * tileHeight > best.tileWidth * best.tileHeight) best = { columns, tileWidth, tileHeight };
  }
  return best;
}
