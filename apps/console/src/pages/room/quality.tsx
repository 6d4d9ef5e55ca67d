import type { Session, SessionQuality } from '@callplane/server/requests';
import { Badge, type Tone } from '../../components/text.js';
import { durationText } from '../../format.js';

const TONES: Record<SessionQuality['worst'], Tone> = { good: 'good', fair: 'warn', poor: 'bad', lost: 'bad' };
const LEVELS = ['good', 'fair', 'poor', 'lost'] as const;

/** The worst connection quality of a session, and whether its media goes through a relay. */
export function Quality({ session }: { session: Session | undefined }) {
  if (session === undefined) return <span className="quiet">–</span>;
  const { quality } = session;
  if (quality === null) return <span className="quiet">not measured</span>;
  return (
    <span className="row">
      <Badge tone={TONES[quality.worst]}>{quality.worst}</Badge>
      {quality.relay && <span className="quiet">relayed</span>}
    </span>
  );
}

/** How long a session had each quality, in words and as one bar. */
export function QualitySeconds({ quality }: { quality: SessionQuality }) {
  const { seconds } = quality;
  const shown = LEVELS.filter((level) => seconds[level] > 0);
  return (
    <div className="quiet small quality-seconds">
      <div className="quality-bar" aria-hidden="true">
        {shown.map((level) => (
          <span key={level} className={level} style={{ flexGrow: seconds[level] }} />
        ))}
      </div>
      <p>
        {shown.map((level) => `${level} ${durationText(seconds[level] * 1_000)}`).join(', ')}
        {seconds.relayed > 0 && ` (relayed ${durationText(seconds.relayed * 1_000)})`}
      </p>
    </div>
  );
}
