/**
 * Splits the parameter `options` from a database URL. node-postgres lets the parameters of a URL replace those of the
 * program, so the options of an operator would remove ours.
 */
export function splitOptions(url: string): { url: string; options: string[] } {
  const at = url.indexOf('?');
  if (at < 0) return { url, options: [] };
  const parameters = new URLSearchParams(url.slice(at + 1));
  const options = parameters.getAll('options').filter((value) => value !== '');
  if (options.length === 0) return { url, options };
  parameters.delete('options');
  return { url: parameters.size === 0 ? url.slice(0, at) : `${url.slice(0, at)}?${parameters.toString()}`, options };
}
