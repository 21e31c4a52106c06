import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { count, formatted, timeZone } from './time';

export interface Line {
  label: string;
  values: readonly number[];
}

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Lines over time, on a canvas. Whoever shows one shows the same numbers in a table beside it. */
export function Plot({
  label,
  times,
  lines,
  show = count,
  height = 220,
}: {
  label: string;
  times: readonly string[];
  lines: readonly Line[];
  /** How a value is written. */
  show?: (value: number) => string;
  height?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const content = JSON.stringify([times, lines]);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const [at, series] = JSON.parse(content) as [string[], Line[]];
    const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, font: '12px system-ui' };
    // those of the legend
    const colours = ['--accent', '--warn', '--bad', '--quiet'].map(colour);
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), timeZone()),
        legend: { show: false },
        cursor: { points: { size: 6 } },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { ...axis, values: (_, splits) => splits.map((s) => tick(s, splits)) },
          { ...axis, size: (_, texts) => widthOf(texts), values: (_, splits) => splits.map(show) },
        ],
        series: [
          {},
          ...series.map((line, index) => ({
            label: line.label,
            stroke: colours[index % colours.length]!,
            width: 2,
            fill: index === 0 ? colour('--accent-soft') : 'transparent',
          })),
        ],
      },
      [at.map((text) => Date.parse(text) / 1_000), ...series.map(({ values }) => [...values])],
      element,
    );
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [content, height, show]);
  return <div ref={place} className="plot" role="img" aria-label={label} />;
}

/** What the longest text beside the plot needs, in pixels. There are none yet when it is drawn first. */
const widthOf = (texts: readonly string[] | null): number =>
  Math.max(64, 24 + 7 * Math.max(0, ...(texts ?? []).map(({ length }) => length)));

function tick(seconds: number, splits: readonly number[]): string {
  const span = (splits.at(-1) ?? 0) - (splits[0] ?? 0);
  const options: Intl.DateTimeFormatOptions =
    span > 180 * 86_400
      ? { year: 'numeric', month: 'short' }
      : span > 3 * 86_400
        ? { month: 'short', day: 'numeric' }
        : { hour: '2-digit', minute: '2-digit' };
  return formatted(seconds * 1_000, options);
}
