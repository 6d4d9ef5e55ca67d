/** Rows that one figure of `GET /v1/overview` counts. */
export const OVERVIEW_ROWS_MAX = 10_000;
/** The figures of the last hour come in this many slots. */
export const OVERVIEW_SLOTS = 12;
export const OVERVIEW_SLOT_SECONDS = 300;
