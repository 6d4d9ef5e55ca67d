import type { Recording } from '@callplane/server/requests';
import { useApiList } from '../../api/hooks.js';
import { Filters, SelectFilter, TextFilter, type Options } from '../../components/fields.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time, type Tone } from '../../components/text.js';
import { durationText } from '../../format.js';
import { useQueryParameters } from '../../navigation/location.js';

type Status = Recording['status'];
const TONES: Record<Status, Tone> = { recording: 'bad', processing: 'warn', completed: 'good', failed: 'bad' };
const STATUS_OPTIONS: Options = [['', 'All'], ...Object.keys(TONES).map((status) => [status, status] as const)];

export default function RecordingsPage() {
  const [parameters] = useQueryParameters();
  const [status, roomId] = [parameters.get('status') ?? '', parameters.get('room') ?? ''];
  const list = useApiList('listRecordings', {
    ...(status === '' ? {} : { status: status as Status }),
    ...(roomId === '' ? {} : { roomId }),
  });
  return (
    <Page title="Recordings" subtitle="Recordings of all rooms, newest first.">
      <Filters>
        <SelectFilter label="Status" name="status" options={STATUS_OPTIONS} />
        <TextFilter label="Room" name="room" placeholder="room_…" />
      </Filters>
      <ListTable
        label="Recordings"
        list={list}
        columns={COLUMNS}
        to={({ id }) => `/recordings/${id}`}
        empty={
          status === '' && roomId === '' ? (
            <Empty icon="camera" title="Nothing has been recorded yet.">
              Start a recording on the page of a room with a call.
            </Empty>
          ) : (
            <Empty icon="search" title="No recording matches these filters." />
          )
        }
      />
    </Page>
  );
}

const COLUMNS: readonly Column<Recording>[] = [
  {
    title: 'Started',
    width: '2fr',
    // In a narrow list, mode and duration have no columns and stand in a second line.
    cell: (recording) => (
      <span className="two-lines">
        <Time value={recording.startedAt} full />
        <span className="quiet small cut narrow-only">
          {recording.mode} · {lengthOf(recording)}
        </span>
      </span>
    ),
  },
  { title: 'Status', width: '9rem', cell: (recording) => <RecordingStatus {...recording} /> },
  { title: 'Mode', width: '7rem', priority: 2, cell: ({ mode, audioOnly }) => (audioOnly ? `${mode}, sound` : mode) },
  { title: 'Duration', width: '8rem', priority: 2, cell: lengthOf },
  { title: 'Room', width: '2fr', priority: 3, cell: ({ roomId }) => <span className="cut">{roomId}</span> },
];

export function lengthOf({ durationMs }: Recording): string {
  return durationMs === null ? '–' : durationText(durationMs);
}

export function RecordingStatus({ status, progress }: Pick<Recording, 'status' | 'progress'>) {
  return <Badge tone={TONES[status]}>{status === 'processing' ? `processing ${progress} %` : status}</Badge>;
}
