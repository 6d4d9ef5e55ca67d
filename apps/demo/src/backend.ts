export interface Ticket {
  token: string;
  roomId: string;
  participantId: string;
}

/** What a product's own backend does: makes the room if need be, and issues a token. */
export async function askForToken(room: string, name: string): Promise<Ticket> {
  const response = await fetch(`${import.meta.env.BASE_URL}api/join`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ room, name }),
  });
  const body = (await response.json()) as Ticket & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `The demo's backend answered ${response.status}.`);
  return body;
}

export function signalingUrl(): string {
  const url = new URL('/v1/signaling', location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url.href;
}
