import type { OperationDeps } from '@callplane/operations';
import type { ObjectStore } from '@callplane/store';

export interface Deps extends OperationDeps {
  store: ObjectStore;
  /** For unfinished files. */
  scratchFolder: string;
}
