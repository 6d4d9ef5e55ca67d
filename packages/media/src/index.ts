/** Media servers (Janus), their sessions and peers, and the parsing and choice of media nodes. */
export * from './types.js';
export { isNodeName, parseMediaNodes, parseNodeUrl, type MediaNodeAddress } from './addresses.js';
export { isConnectionRefused, MediaNode } from './janus/node.js';
export { MediaPublisher } from './janus/handle.js';
export { MediaSession } from './janus/session.js';
export { MediaSubscriber } from './janus/subscriber.js';
export { isOutdated, JANUS_VERSION_MIN } from './janus/version.js';
export { CAPACITY_DEFAULT, chooseForSession, chooseNode, MediaNodes, type NodeLoad } from './nodes.js';
