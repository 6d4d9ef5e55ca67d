import type { Platform } from '@callplane/client-js';

/** WebRTC and WebSockets of Node for the browser SDK. Imported on demand: WebRTC takes longer to load than most commands. */
export async function nodePlatform() {
  const [{ WebSocket }, { default: wrtc }] = await Promise.all([import('ws'), import('@roamhq/wrtc')]);
  return {
    RTCPeerConnection: wrtc.RTCPeerConnection as unknown as NonNullable<Platform['RTCPeerConnection']>,
    WebSocket: WebSocket as unknown as Platform['WebSocket'],
    /** Sources and sinks of pictures and sound. */
    media: wrtc.nonstandard,
  };
}
