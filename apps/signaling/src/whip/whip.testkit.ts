import { createRtcPeer, eventually, type RtcPeer } from '@callplane/testing';

export const SDP = 'application/sdp';
export const FRAGMENT = 'application/trickle-ice-sdpfrag';

/** A request of WHIP. @param path `/v1/whip`, or what a Location header says */
export async function request(
  url: string,
  method: string,
  path: string,
  {
    token,
    body,
    ...headers
  }: { token?: string | undefined; body?: string | undefined; [header: string]: string | undefined } = {},
) {
  const response = await fetch(new URL(path, url), {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      ),
    },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text };
}

export const post = (url: string, token: string | undefined, body: string, headers: Record<string, string> = {}) =>
  request(url, 'POST', '/v1/whip', { token, body, 'content-type': SDP, ...headers });

/** The error code of an answer in the shape of the REST API. */
export function codeOf({ text }: { text: string }): string {
  return (JSON.parse(text) as { error: { code: string } }).error.code;
}

const withoutCandidates = (sdp: string): string => sdp.replace(/^a=(candidate:.*|end-of-candidates)\r\n/gm, '');

export type Encoder = Awaited<ReturnType<typeof startEncoder>>;

/** An encoder that publishes a picture, a tone or both, as far as POST: its candidates follow by PATCH. */
export async function startEncoder(
  url: string,
  token: string,
  { audio = true, video = true }: { audio?: boolean; video?: boolean } = {},
) {
  const peer = await createRtcPeer();
  const tracks = [...(audio ? [peer.addAudio()] : []), ...(video ? [peer.addVideo()] : [])];
  const offer = withoutCandidates(await peer.offer());
  const posted = await post(url, token, offer);
  if (posted.status !== 201) throw new Error(`${posted.status} ${posted.text}`);
  await peer.acceptAnswer(posted.text);
  const location = posted.headers.get('location') ?? '';
  let answer = posted.text;
  return {
    peer,
    tracks,
    posted,
    location,
    sessionId: location.split('/').at(-1) ?? '',
    etag: posted.headers.get('etag') ?? '',
    fragment: (sdp = offer) => fragmentOf(peer, sdp),
    patch: (to: string, body: string, match: string | undefined) =>
      request(to, 'PATCH', location, { token, body, 'content-type': FRAGMENT, 'if-match': match }),
    delete: (to: string) => request(to, 'DELETE', location, { token }),
    /** Restarts ICE at this gateway, and accepts the new credentials. */
    async restart(to: string) {
      const again = withoutCandidates(await peer.offer({ iceRestart: true }));
      const patched = await this.patch(to, await fragmentOf(peer, again), '*');
      if (patched.status !== 200) return patched;
      const value = (name: string) => new RegExp(`a=${name}:(\\S+)`).exec(patched.text)?.[1] ?? '';
      answer = answer
        .replace(/a=ice-ufrag:\S+/g, `a=ice-ufrag:${value('ice-ufrag')}`)
        .replace(/a=ice-pwd:\S+/g, `a=ice-pwd:${value('ice-pwd')}`);
      await peer.acceptAnswer(answer);
      return patched;
    },
  };
}

/** The candidates of the peer, once it has gathered all of them, under the credentials of its offer. */
async function fragmentOf(peer: RtcPeer, sdp: string): Promise<string> {
  const found: { candidate: string }[] = [];
  let isComplete = false;
  peer.onCandidate((candidate) => {
    if (candidate === null) isComplete = true;
    else if (candidate.candidate !== '') found.push(candidate);
  });
  await eventually(() => isComplete);
  const [ufrag, password] = ['ice-ufrag', 'ice-pwd'].map((name) => new RegExp(`a=${name}:\\S+`).exec(sdp)?.[0] ?? '');
  const lines = found.map(({ candidate }) => `a=${candidate}`);
  return [ufrag, password, 'm=audio 9 RTP/AVP 0', 'a=mid:0', ...lines, 'a=end-of-candidates', ''].join('\r\n');
}
