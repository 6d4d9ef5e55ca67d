/** The clock of the browser. Everything that compares a time of the API with now reads it here. */
export function nowMs(): number {
  return Date.now();
}
