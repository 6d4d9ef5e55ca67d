export interface Rect {
  left: number;
  top: number;
  width: number;
  height: number;
}

interface Space {
  width: number;
  height: number;
  gap: number;
}

/** Cameras are wide; a tile of another shape would crop the picture or leave bars. */
const ASPECT = 16 / 9;
/** Below this width, the page has the shape of a phone. */
const NARROW_PX = 700;
const GRID_MAX = { narrow: 6, wide: 9 };
const STRIP = { width: 208, height: 117 };
/** Below the stage of a phone, tiles are in two columns. */
const COLUMNS_BELOW = 2;
const STAGE_SHARE_MAX = 0.55;

/**
 * Places the tiles of one page.
 * @param count tiles from the first on the page to the last of all, without the one on the stage
 * @returns `perPage`: tiles that fit on a page, without the one on the stage
 */
export function layOut(count: number, hasStage: boolean, space: Space) {
  const isNarrow = space.width < NARROW_PX;
  if (!hasStage) {
    const perPage = isNarrow ? GRID_MAX.narrow : GRID_MAX.wide;
    return { stage: undefined, tiles: grid(Math.min(count, perPage), space), perPage };
  }
  return isNarrow ? stageAbove(count, space) : stageBeside(count, space);
}

function stageBeside(count: number, space: Space) {
  const { width, height } = STRIP;
  const perPage = Math.max(1, Math.floor((space.height + space.gap) / (height + space.gap)));
  const shown = Math.min(count, perPage);
  const stripWidth = shown === 0 ? 0 : width + space.gap;
  const top = Math.max(0, (space.height - shown * height - (shown - 1) * space.gap) / 2);
  const left = space.width - width;
  return {
    stage: { left: 0, top: 0, width: Math.max(0, space.width - stripWidth), height: space.height },
    tiles: times(shown, (index) => ({ left, top: top + index * (height + space.gap), width, height })),
    perPage,
  };
}

function stageAbove(count: number, { width, height, gap }: Space) {
  const stageHeight = count === 0 ? height : Math.min(width / ASPECT, height * STAGE_SHARE_MAX);
  const tileWidth = (width - gap * (COLUMNS_BELOW - 1)) / COLUMNS_BELOW;
  const tileHeight = tileWidth / ASPECT;
  const rows = Math.max(1, Math.floor((height - stageHeight) / (tileHeight + gap)));
  const shown = Math.min(count, rows * COLUMNS_BELOW);
  return {
    stage: { left: 0, top: 0, width, height: stageHeight },
    tiles: times(shown, (index) => ({
      left: (index % COLUMNS_BELOW) * (tileWidth + gap),
      top: stageHeight + gap + Math.floor(index / COLUMNS_BELOW) * (tileHeight + gap),
      width: tileWidth,
      height: tileHeight,
    })),
    perPage: rows * COLUMNS_BELOW,
  };
}

/** The number of columns that makes the tiles largest. The last row is centred. */
function grid(count: number, { width, height, gap }: Space): Rect[] {
  let best = { columns: 1, tileWidth: 0 };
  for (let columns = 1; columns <= count; columns++) {
    const rows = Math.ceil(count / columns);
    const cellWidth = Math.max(0, (width - gap * (columns - 1)) / columns);
    const cellHeight = Math.max(0, (height - gap * (rows - 1)) / rows);
    const tileWidth = Math.min(cellWidth, cellHeight * ASPECT);
    if (tileWidth > best.tileWidth) best = { columns, tileWidth };
  }
  const { columns, tileWidth } = best;
  const tileHeight = tileWidth / ASPECT;
  const rows = Math.ceil(count / columns);
  const top = (height - rows * tileHeight - (rows - 1) * gap) / 2;
  return times(count, (index) => {
    const row = Math.floor(index / columns);
    const inRow = Math.min(columns, count - row * columns);
    const left = (width - inRow * tileWidth - (inRow - 1) * gap) / 2;
    return {
      left: left + (index % columns) * (tileWidth + gap),
      top: top + row * (tileHeight + gap),
      width: tileWidth,
      height: tileHeight,
    };
  });
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: Math.max(0, count) }, (_, index) => make(index));
}
