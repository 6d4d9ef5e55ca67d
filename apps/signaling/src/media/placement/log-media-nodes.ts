import type { MediaNode, MediaNodes } from '@callplane/media';
import type { Logger } from '@callplane/runtime';

/** Logs which media servers this process knows and reaches. */
export function logMediaNodes(nodes: MediaNodes, logger: Logger): void {
  const watch = (node: MediaNode): void => {
    node.on('up', () => logger.info('media server up', { node: node.id }));
    node.on('down', (error) => logger.warn('media server down', { node: node.id, error }));
  };
  nodes.all().forEach(watch);
  nodes.on('added', (node) => {
    logger.info('media server registered', { node: node.id });
    watch(node);
  });
  nodes.on('removed', ({ id }) => logger.info('media server removed', { node: id }));
}
