import type { OperationDeps } from '@callplane/operations';
import type { ObjectStore } from '@callplane/store';
import type { CompositeFormat } from './composite/scene-arguments.js';

export interface Deps extends OperationDeps {
  store: ObjectStore;
  /** For unfinished files. */
  scratchFolder: string;
  compositeFormat: CompositeFormat;
}
