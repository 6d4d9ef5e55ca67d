/** Outlines of 24 by 24 units, drawn with the colour of the text. */
const SHAPES = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  recordings: 'M12 3.500a8.500 8.500 0 1 1 0 17 8.500 8.500 0 0 1 0-17zM12 9a3 3 0 1 1 0 6 3 3 0 0 1 0-6z',
  webhooks:
    'M9.500 8.500a3.200 3.200 0 1 1 4.700 2.300l3 5.200M12 8l-3.400 6M6.500 13.500a3.200 3.200 0 1 0 3.300 4.500h6.700M17.500 14.500a3.200 3.200 0 1 1-2 5',
  deliveries: 'm21 4-9.500 9.500M21 4l-6 17-3.500-7.500L4 10z',
  developers: 'm8 7-5 5 5 5M16 7l5 5-5 5M13.500 5l-3 14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'm6 6 12 12M18 6 6 18',
  copy: 'M9 9V5a1 1 0 0 1 1-1h9a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-4M5 9h9a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-9a1 1 0 0 1 1-1z',
  check: 'm5 12.500 4.500 4.500L19 7.500',
  microphone:
    'M12 3.500a2.500 2.500 0 0 1 2.500 2.500v5a2.500 2.500 0 0 1-5 0V6A2.500 2.500 0 0 1 12 3.500zM6 11a6 6 0 0 0 12 0M12 17v3.500',
  mute: 'M9.500 9.500V6a2.500 2.500 0 0 1 5 0v5M6 11a6 6 0 0 0 9.500 4.900M18 11v.6M12 17v3.500M4 4l16 16',
  camera: 'M16 10.500 21 7v10l-5-3.500M5 6h9a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2z',
  screen: 'M4 5h16a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM8.500 20h7M12 16v4',
  search: 'M10.500 4a6.500 6.500 0 1 1 0 13 6.500 6.500 0 0 1 0-13zM15.500 15.500 20 20',
  warning: 'M12 4 2.800 19.500h18.400zM12 10v4.500M12 17v.2',
  refresh:
    'M20 5v5h-5M4 19v-5h5M19.200 10A7.500 7.500 0 0 0 6 7.500L4.500 9M4.800 14A7.500 7.500 0 0 0 18 16.500l1.500-1.500',
  people:
    'M9 11.500a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM2.500 19.500c.5-3.500 3-5.500 6.500-5.500s6 2 6.500 5.500M15.500 5a3.300 3.300 0 0 1 0 6.300M18 14.500c2 .8 3.200 2.500 3.500 5',
  leave:
    'M14 8V5a1 1 0 0 0-1-1H5a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h8a1 1 0 0 0 1-1v-3M9.500 12H21M17.500 8.500 21 12l-3.500 3.500',
  back: 'm14 6-6 6 6 6',
};

export type IconName = keyof typeof SHAPES;

/** A picture beside a text that says the same, so it is hidden from screen readers. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={SHAPES[name]} />
    </svg>
  );
}
