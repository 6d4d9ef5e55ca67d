/** The media-server port, its Janus implementation, and the parsing and choice of media nodes. */
export * from './media-node.js';
export { CAPACITY_DEFAULT, chooseNode, type NodeLoad } from './choose-node.js';
export { JanusNode, type JanusNodeOptions } from './janus/janus-node.js';
export type { JanusDeadlines } from './janus/janus-connection.js';
export { MediaNodes, type MediaNodesOptions } from './media-nodes.js';
export { isNodeName, parseMediaNodes, parseNodeUrl, type MediaNodeAddress } from './node-addresses.js';
