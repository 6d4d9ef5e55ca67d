import type { Recording, RecordingFile } from '@callplane/server/requests';
import { useState } from 'react';
import { useApi, useApiAction, useAskedAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Facts, LoadedPage, Page, Section } from '../../components/layout.js';
import { Empty } from '../../components/states.js';
import { Id, Json, Time } from '../../components/text.js';
import { bytesText, durationText } from '../../format.js';
import { CONSOLE_LIMITS } from '../../limits.js';
import { Link, navigate } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { lengthOf, RecordingStatus } from './recordings.page.js';

const UP = { to: '/recordings', label: 'Recordings' };

export default function RecordingPage({ parameters }: { parameters: Record<string, string> }) {
  const { recordingId = '' } = parameters;
  const isOver = (status?: string) => status === 'completed' || status === 'failed';
  const everyMs = (recording?: Recording) => !isOver(recording?.status) && CONSOLE_LIMITS.rereadEveryMs;
  return (
    <LoadedPage query={useApi('readRecording', { recordingId }, { everyMs })} title="Recording" up={UP}>
      {(recording) => <RecordingView recording={recording} />}
    </LoadedPage>
  );
}

function RecordingView({ recording }: { recording: Recording }) {
  const { status, progress, queuePosition, lastError, files, gaps } = recording;
  return (
    <Page
      title={`${recording.mode === 'composite' ? 'Composite' : 'Tracks'} of a call`}
      up={UP}
      badge={
        <span role="status">
          <RecordingStatus {...recording} />
        </span>
      }
      subtitle={<Id value={recording.id} label="recording's identifier" />}
      actions={<Actions recording={recording} />}
    >
      {lastError !== null && (
        <div className="notice below bad" role="note" aria-label="Why it failed">
          <strong>{lastError.message}</strong>
          <p>The raw parts are kept. An operator makes the files again with “rtc operations retry”.</p>
        </div>
      )}
      <div className="card stack below">
        {status === 'processing' && <progress value={progress} max={100} aria-label="Progress of the processing" />}
        <Facts
          facts={[
            ['Room', <Link to={`/rooms/${recording.roomId}`}>{recording.roomId}</Link>],
            ['Only', recording.participantId !== null && <Id value={recording.participantId} />],
            ['Place in the queue', queuePosition !== null && queuePosition],
            ['Started', <Time value={recording.startedAt} full />],
            ['Ended', <Time value={recording.endedAt} full />],
            ['Duration', lengthOf(recording)],
            ['Completed', <Time value={recording.completedAt} full />],
          ]}
        />
      </div>
      <Section title="Files">
        {files.length === 0 ? (
          <Empty icon="camera" title={status === 'completed' ? 'Nothing was sent.' : 'The files are not made yet.'} />
        ) : (
          <div className="stack">
            {files.map((file) => (
              <File key={file.id} recordingId={recording.id} file={file} />
            ))}
          </div>
        )}
      </Section>
      {gaps.length > 0 && (
        <Section title="Gaps">
          <ul>
            {gaps.map(({ startMs, durationMs, reason }) => (
              <li key={`${startMs} ${reason}`}>
                {durationText(durationMs)} from {durationText(startMs)}: {reason}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Metadata">
        <Json value={recording.metadata} label="Metadata of the recording" />
      </Section>
    </Page>
  );
}

/** A file, whose player gets a link when it is opened: links expire. */
function File({ recordingId, file }: { recordingId: string; file: RecordingFile }) {
  const [url, setUrl] = useState<string>();
  const { id: fileId, source, participantId, contentType, bytes, durationMs } = file;
  const { mutate, isPending } = useApiAction('createRecordingLink', { onDone: (link) => setUrl(link.url) });
  const what = source ?? 'composite';
  const Player = contentType.startsWith('audio') ? 'audio' : 'video';
  return (
    <article className="card stack" aria-label={`File of ${what}`}>
      <div className="row spread">
        <div>
          <strong>{what}</strong>{' '}
          <span className="quiet small">
            {contentType} · {durationText(durationMs)} · {bytesText(bytes)}
          </span>
          {participantId !== null && <div className="quiet small cut">{participantId}</div>}
        </div>
        {url === undefined ? (
          <Button isBusy={isPending} onClick={() => mutate({ recordingId, fileId })}>
            Play
          </Button>
        ) : (
          <a className="button plain" href={url} target="_blank" rel="noreferrer">
            Open the file
          </a>
        )}
      </div>
      {url !== undefined && <Player className="recording-player" src={url} controls autoPlay aria-label={what} />}
    </article>
  );
}

function Actions({ recording }: { recording: Recording }) {
  const mayWrite = useScope('recordings:write');
  const stop = useApiAction('stopRecording', { done: 'The recording has ended. Its files are made now.' });
  const remove = useAskedAction('deleteRecording', {
    done: 'The recording is deleted.',
    onDone: () => navigate('/recordings'),
  });
  const { id: recordingId } = recording;
  if (!mayWrite) return null;
  if (recording.status === 'recording') {
    return (
      <Button kind="primary" isBusy={stop.isPending} onClick={() => stop.mutate({ recordingId })}>
        Stop
      </Button>
    );
  }
  const question = {
    title: 'Delete the recording?',
    body: 'Its files are deleted as well. This cannot be undone.',
    isDangerous: true,
    action: 'Delete the recording',
  };
  return (
    <Button kind="danger" isBusy={remove.isPending} onClick={() => remove.ask(question, { recordingId })}>
      Delete
    </Button>
  );
}
