import type { Session, SessionQuality, SessionTrack } from '@callplane/server/requests';
import { durationText } from '../../format.js';

export const SOURCES: Record<SessionTrack['source'], string> = {
  microphone: 'microphone',
  camera: 'camera',
  screen: 'screen',
  screen_audio: 'sound of the screen',
};

export function publishedTracks(session: Session | undefined): SessionTrack[] {
  if (session === undefined || session.leftAt !== null) return [];
  return session.tracks.filter(({ unpublishedAt }) => unpublishedAt === null);
}

const LEVELS = ['good', 'fair', 'poor', 'lost'] as const;

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
