// Health check of a container: whether the process answers /livez. It never asks whether its dependencies do: restarting
// every app because PostgreSQL is away would only make things worse. (Load balancers ask /readyz.)
const port = process.env.HEALTH_CHECK_PORT ?? process.env.HEALTH_PORT ?? process.env.PORT;
try {
  const response = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(2000) });
  process.exit(response.ok ? 0 : 1);
} catch {
  process.exit(1);
}
