/**
 * Applies the project's migrations. The schema engine is loaded only where it is used: most test files copy the
 * template and never need it.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const { applyMigrations } = await import('@callplane/db');
  await applyMigrations({ databaseUrl });
}
