import type { TableHealth } from '@callplane/db';
import type { Operator } from '../fleet/operator.js';
import { printHead, printRow } from './figures.js';

/** The tables that the benchmark fills. */
const TABLES = ['events', 'webhook_deliveries', 'webhook_attempts'];

/** What `rtc db tables` says of the filled tables at each stage of the benchmark. */
export function growthTables(operator: Operator) {
  const stages: { stage: string; tables: TableHealth[] }[] = [];
  return {
    async read(stage: string) {
      const { tables } = await operator.rtc<{ tables: TableHealth[] }>('db', 'tables');
      stages.push({ stage, tables: tables.filter(({ table }) => TABLES.includes(table)) });
    },
    report() {
      console.log();
      printHead('`rtc db tables`', 'table', 'live rows', 'dead rows', 'MiB', 'bytes for each live row');
      for (const { stage, tables } of stages) {
        for (const { table, liveRows, deadRows, bytes } of tables) {
          const cells = [liveRows, deadRows, Math.round(bytes / 1_048_576), Math.round(bytes / Math.max(1, liveRows))];
          printRow(stage, table, ...cells.map((cell) => cell.toLocaleString('en')));
        }
      }
    },
  };
}
