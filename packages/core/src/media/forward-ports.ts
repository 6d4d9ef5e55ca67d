/** UDP ports of media servers. */
export interface ForwardPorts {
  /** For RTP of a feed that another server sends. Each has the next one for RTCP. */
  feeds: readonly number[];
  /** On which the agent beside a server answers probes of others. */
  probe: number;
}

/**
 * @param range `<first>-<last>`
 * @throws Error that names the fault
 */
export function forwardPorts(range: string): ForwardPorts {
  const [first = 0, probe = 0] = range.split('-').map(Number);
  if (first < 1024 || probe > 65_535 || probe <= first + 1)
    throw new Error('must be a range of ports from 1024 to 65535');
  return { feeds: Array.from({ length: (probe - first) >> 1 }, (_, at) => first + 2 * at), probe };
}
