import type { OwnQuality, OwnQualityContext } from './own-quality.js';

/**
 * Loads the code that measures the line, and begins to measure: a call can begin without it.
 * @returns undefined if the call is over by then
 */
export async function loadOwnQuality(context: OwnQualityContext): Promise<OwnQuality | undefined> {
  const { OwnQuality } = await import('./own-quality.js');
  if (context.session.state === 'closed') return undefined;
  const ownQuality = new OwnQuality(context);
  ownQuality.welcomed();
  return ownQuality;
}
