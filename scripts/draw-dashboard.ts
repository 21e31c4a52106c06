// `node --import tsx scripts/draw-dashboard.ts PROMETHEUS_URL [MINUTES]`: writes docs/operate/dashboard.svg, a picture
// of docs/operate/grafana.json. It asks a Prometheus that scrapes the service for what each panel shows, and draws that
// where the file places the panel. It is no screenshot: Grafana draws it in its own way.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../src/paths.ts';

interface Panel {
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: { expr: string; legendFormat: string }[];
  fieldConfig: { defaults: { unit: string } };
}
interface Line {
  name: string;
  points: [at: number, value: number][];
}
interface Span {
  start: number;
  end: number;
}

const folder = path.join(projectRoot, 'docs', 'operate');
const CELL = { w: 50, h: 22 };
const GAP = 6;
const COLORS = ['#2f7ed8', '#c4572c', '#3a923a', '#8e5bb5', '#c79a00', '#0f8f96', '#b03a5b', '#6b6b6b'];
const STEP_SECONDS = 5;
const MOST_LINES = 8;

/** The expressions as Grafana would send them with all nodes chosen. */
const filled = (expr: string): string =>
  expr.replaceAll('$__rate_interval', '30s').replaceAll(/\$(?:job|instance)\b/g, '.*');

async function linesOf(base: string, { targets }: Panel, { start, end }: Span): Promise<Line[]> {
  const lines: Line[] = [];
  for (const { expr, legendFormat } of targets) {
    const query = new URLSearchParams({
      query: filled(expr),
      start: `${start}`,
      end: `${end}`,
      step: `${STEP_SECONDS}`,
    });
    const answer = (await (await fetch(`${base}/api/v1/query_range?${query}`)).json()) as {
      error?: string;
      data: { result: { metric: Record<string, string>; values: [number, string][] }[] };
    };
    if (answer.error) throw new Error(`${expr}: ${answer.error}`);
    for (const { metric, values } of answer.data.result)
      lines.push({
        name: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
        points: values
          .map(([at, value]): [number, number] => [at, Number(value)])
          .filter(([, value]) => !Number.isNaN(value)),
      });
  }
  return lines.filter(({ points }) => points.length > 0).slice(0, MOST_LINES);
}

const UNITS: Record<string, (value: number) => string> = {
  percentunit: (value) => `${round(value * 100)} %`,
  s: (value) => (value < 1 ? `${round(value * 1_000)} ms` : `${round(value)} s`),
  bytes: (value) => `${round(value / 1024 ** 2)} MiB`,
  reqps: (value) => `${round(value)}/s`,
  ops: (value) => `${round(value)}/s`,
};
const round = (value: number): string => String(Number(value.toPrecision(3)));
const shown = (unit: string, value: number): string => (UNITS[unit] ?? round)(value);

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const text = (x: number, y: number, said: string, more = ''): string =>
  `<text x="${Math.round(x)}" y="${Math.round(y)}"${more}>${escaped(said)}</text>`;

/** A panel, in a frame of its own. */
function drawn(panel: Panel, lines: readonly Line[], span: Span): string {
  const { x, y, w, h } = panel.gridPos;
  const [width, height] = [w * CELL.w - GAP, h * CELL.h - GAP];
  const unit = panel.fieldConfig.defaults.unit;
  const inside = panel.type === 'stat' ? stat(lines, unit, width, height) : chart(lines, unit, { width, height, span });
  return (
    `<g transform="translate(${x * CELL.w} ${y * CELL.h})">` +
    `<rect width="${width}" height="${height}" fill="#fff" stroke="#ccc"/>` +
    `${text(8, 16, panel.title, ' font-weight="bold" font-size="11"')}${inside}</g>`
  );
}

function stat(lines: readonly Line[], unit: string, width: number, height: number): string {
  const last = lines[0]?.points.at(-1)?.[1];
  return text(
    width / 2,
    height / 2 + 18,
    last === undefined ? 'no data' : shown(unit, last),
    ' font-size="26" text-anchor="middle"',
  );
}

const AXIS = 62;
const HEAD = 26;
const LEGEND = 20;

function chart(
  lines: readonly Line[],
  unit: string,
  { width, height, span }: { width: number; height: number; span: Span },
): string {
  const most = Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value))) || 1;
  const [right, bottom] = [width - 8, height - LEGEND - 8];
  const at = ([time, value]: [number, number]): string => {
    const x = AXIS + ((time - span.start) / (span.end - span.start)) * (right - AXIS);
    return `${x.toFixed(1)},${(bottom - (value / most) * (bottom - HEAD)).toFixed(1)}`;
  };
  const scale = [0, 0.5, 1].map((part) => {
    const y = bottom - part * (bottom - HEAD);
    return (
      `<path d="M${AXIS} ${Math.round(y)}H${right}" stroke="#eee"/>` +
      text(AXIS - 4, y + 3, shown(unit, part * most), ' text-anchor="end"')
    );
  });
  const drawnLines = lines.map(({ points }, index) => {
    const color = COLORS[index % COLORS.length];
    return `<polyline points="${points.map(at).join(' ')}" stroke="${color}" fill="none" stroke-width="1.5"/>`;
  });
  return [...scale, ...drawnLines, legend(lines, width, height)].join('');
}

function legend(lines: readonly Line[], width: number, height: number): string {
  const parts: string[] = [];
  let x = 8;
  for (const [index, { name }] of lines.entries()) {
    const room = name.length * 5.4 + 22;
    if (x + room > width) break;
    parts.push(
      `<rect x="${Math.round(x)}" y="${height - 16}" width="8" height="8" fill="${COLORS[index % COLORS.length]}"/>` +
        text(x + 12, height - 8, name),
    );
    x += room;
  }
  return parts.join('');
}

const [base, minutes = '3'] = process.argv.slice(2);
if (!base) throw new Error('The address of a Prometheus is missing.');
const { title, panels } = JSON.parse(readFileSync(path.join(folder, 'grafana.json'), 'utf8')) as {
  title: string;
  panels: Panel[];
};
const end = Math.floor(Date.now() / 1_000);
const span = { start: end - Number(minutes) * 60, end };
const drawnPanels: string[] = [];
for (const panel of panels) drawnPanels.push(drawn(panel, await linesOf(base, panel, span), span));
const rows = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h));
const [width, height] = [24 * CELL.w, rows * CELL.h];
const svg =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
  `role="img" aria-label="${escaped(title)}" font-family="sans-serif" font-size="10">` +
  `<rect width="${width}" height="${height}" fill="#f4f5f5"/>\n${drawnPanels.join('\n')}\n</svg>\n`;
writeFileSync(path.join(folder, 'dashboard.svg'), svg);
console.log(`Drew ${panels.length} panels from ${minutes} minutes.`);
