// Health check of a container: checks that the process answers /livez. It ignores dependencies on purpose: restarting
// every app during an outage of PostgreSQL would only make the outage worse. (Load balancers use /readyz.)
// infra/replace.sh names other paths, which must all answer with 2xx.
const port = process.env.HEALTH_CHECK_PORT ?? process.env.HEALTH_PORT ?? process.env.PORT;
const paths = process.argv.length > 2 ? process.argv.slice(2) : ['/livez'];
try {
  for (const path of paths) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(5000) });
    if (response.ok) continue;
    console.error(`GET ${path}: ${response.status}`);
    process.exit(1);
  }
  process.exit(0);
} catch {
  process.exit(1);
}
