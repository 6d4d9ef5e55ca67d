/** The media-server port, its Janus implementation, and the parsing and choice of media nodes. */
export * from './media-node.js';
export { CAPACITY_DEFAULT, chooseNode, type NodeLoad } from './choose-node.js';
export { JanusNode } from './janus/janus-node.js';
export { MediaNodes } from './media-nodes.js';
export { isNodeName, parseMediaNodes, parseNodeUrl, type MediaNodeAddress } from './node-addresses.js';
