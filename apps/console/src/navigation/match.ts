/**
 * @param pattern such as `/rooms/:roomId`
 * @returns the values of its named parts, or undefined if the path is another one
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/');
  const given = path.replace(/(.)\/$/, '$1').split('/');
  if (wanted.length !== given.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const value = given[at] ?? '';
    if (part.startsWith(':')) {
      // Identifiers of the API contain no other characters, so a path needs no decoding.
      if (!/^[A-Za-z0-9_-]{1,128}$/.test(value)) return undefined;
      parameters[part.slice(1)] = value;
    } else if (part !== value) return undefined;
  }
  return parameters;
}
