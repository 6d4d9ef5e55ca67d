import { testConnection } from '@callplane/client-js';

/** Shows the result of each step. @returns whether a call would work */
export async function testLine(url: string, token: string, show: (text: string) => void) {
  const { isUsable, loop } = await testConnection({ url, token, onStep: ({ message }) => show(message) });
  if (loop !== undefined) console.log(loop.roundTripMs, loop.lossUpPercent, loop.lossDownPercent);
  return isUsable;
}
