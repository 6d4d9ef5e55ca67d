import type { TableHealth } from '@callplane/db';

/** The tables that the benchmark fills. */
const TABLES = ['events', 'webhook_deliveries', 'webhook_attempts'];

/** What `rtc db tables` says of the filled tables at each stage of the benchmark. */
export function growthTables(rtc: (...args: string[]) => Promise<{ tables: TableHealth[] }>) {
  const stages: { stage: string; tables: TableHealth[] }[] = [];
  return {
    async read(stage: string) {
      const { tables } = await rtc('db', 'tables');
      stages.push({ stage, tables: tables.filter(({ table }) => TABLES.includes(table)) });
    },
    report() {
      console.log('\n| `rtc db tables` | table | live rows | dead rows | MiB | bytes for each live row |');
      console.log('| --- | --- | --- | --- | --- | --- |');
      for (const { stage, tables } of stages) {
        for (const { table, liveRows, deadRows, bytes } of tables) {
          const cells = [liveRows, deadRows, Math.round(bytes / 1_048_576), Math.round(bytes / Math.max(1, liveRows))];
          console.log(`| ${stage} | ${table} | ${cells.map((cell) => cell.toLocaleString('en')).join(' | ')} |`);
        }
      }
    },
  };
}
