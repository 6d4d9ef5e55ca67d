import { useId } from 'react';
import { PlainTable } from '../components/layout.js';
import { niceTop, shortCount } from '../format.js';

export interface Series {
  name: string;
  /** The colour: 1 to 4 of charts.css. */
  colour: 1 | 2 | 3 | 4;
  values: readonly number[];
}

const FILLED = 0.72;

/**
 * Bars over time, stacked if there are several series. Its table says the same in numbers, for readers who do not see
 * the chart or need a figure.
 * @param labels one for each bar; only the first, the middle and the last appear below the chart
 */
export function BarChart({
  title,
  labels,
  series,
  firstColumn,
}: {
  title: string;
  labels: readonly string[];
  series: readonly Series[];
  firstColumn: string;
}) {
  const id = useId();
  const totals = labels.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  return (
    <figure className="card stack chart" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {series.length > 1 && <Legend series={series} />}
      {totals.every((total) => total === 0) ? (
        <p className="chart-empty">Nothing in this time.</p>
      ) : (
        <Bars labels={labels} series={series} top={niceTop(Math.max(...totals))} />
      )}
      <details>
        <summary>Show the figures</summary>
        <PlainTable
          label={`Figures: ${title}`}
          head={[firstColumn, ...series.map(({ name }) => name)]}
          rows={labels
            .map((label, at) => ({
              key: label,
              cells: [label, ...series.map(({ values }) => shortCount(values[at] ?? 0))],
            }))
            .reverse()}
        />
      </details>
    </figure>
  );
}

interface BarsProps {
  labels: readonly string[];
  series: readonly Series[];
  top: number;
}

function Bars({ labels, series, top }: BarsProps) {
  return (
    <div className="chart-frame" aria-hidden="true">
      <div className="quiet small chart-axis">
        {[top, top / 2, 0].map((value) => (
          <span key={value}>{shortCount(value)}</span>
        ))}
      </div>
      <svg viewBox={`0 0 ${labels.length} 100`} preserveAspectRatio="none">
        {[0, 50, 100].map((y) => (
          <line key={y} className="chart-line" x1="0" x2={labels.length} y1={y} y2={y} />
        ))}
        {labels.map((label, at) => (
          <Bar key={label} at={at} label={label} series={series} top={top} />
        ))}
      </svg>
      <div className="row spread quiet small chart-days">
        {[0, Math.floor((labels.length - 1) / 2), labels.length - 1].map((at) => (
          <span key={at}>{labels[at]}</span>
        ))}
      </div>
    </div>
  );
}

function Bar({ at, label, series, top }: Omit<BarsProps, 'labels'> & { at: number; label: string }) {
  let below = 0;
  const text = series.map(({ name, values }) => `${name}: ${shortCount(values[at] ?? 0)}`).join(', ');
  return (
    <g>
      <title>{`${label}: ${text}`}</title>
      {series.map(({ name, colour, values }) => {
        const height = ((values[at] ?? 0) / top) * 100;
        below += height;
        return (
          <rect
            key={name}
            className={`series-${colour}`}
            x={at + (1 - FILLED) / 2}
            width={FILLED}
            y={100 - below}
            height={height}
          />
        );
      })}
    </g>
  );
}

function Legend({ series }: { series: readonly Series[] }) {
  return (
    <ul className="row quiet small legend" aria-hidden="true">
      {series.map(({ name, colour }) => (
        <li key={name} className="row">
          <i className={`series-${colour}`} />
          {name}
        </li>
      ))}
    </ul>
  );
}
