// Health check of a container: checks that the process answers /livez. It ignores dependencies on purpose: restarting
// every app during an outage of PostgreSQL would only make the outage worse. (Load balancers use /readyz.)
const port = process.env.HEALTH_CHECK_PORT ?? process.env.HEALTH_PORT ?? process.env.PORT;
try {
  const response = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(2000) });
  process.exit(response.ok ? 0 : 1);
} catch {
  process.exit(1);
}
