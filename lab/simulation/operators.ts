import { eraseEvents, requestErasure, type Database } from '@callplane/db';
import { openDatabase } from './apps/tasks.js';
import { running, type SimProcess } from './processes.js';

/** An operator with `rtc` and the database. */
export class Operator {
  readonly #process: SimProcess;
  readonly #database: Database;

  constructor(process: SimProcess, databaseUrl: string) {
    this.#process = process;
    this.#database = running.run(process, () => openDatabase(databaseUrl));
  }

  /** As `rtc participants erase` does. The operator may be told that PostgreSQL is busy, and tries no further. */
  erase(participantId: string): Promise<void> {
    return running.run(this.#process, async () => {
      const now = new Date();
      const outcome = await requestErasure(this.#database, participantId, now).catch(() => null);
      if (outcome !== 'requested') return;
      while ((await eraseEvents(this.#database, participantId, now).catch(() => 0)) > 0);
    });
  }
}
