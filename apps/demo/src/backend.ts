const TOKEN_WITHIN_MS = 10_000;

/** Plays the part of a product's own backend: creates the room if it does not exist, and issues a token. */
export async function requestToken(room: string, name: string): Promise<string> {
  let response: Response;
  try {
    response = await fetch(`${import.meta.env.BASE_URL}api/join`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ room, name }),
      signal: AbortSignal.timeout(TOKEN_WITHIN_MS),
    });
  } catch {
    throw new Error('The server does not answer. Check your connection, and try again in a moment.');
  }
  const body = (await response.json().catch(() => ({}))) as { token: string; error?: { message: string } };
  if (response.status >= 502) throw new Error('The server is starting or away. Try again in a moment.');
  if (!response.ok) throw new Error(body.error?.message ?? `The demo's backend answered ${response.status}.`);
  return body.token;
}
