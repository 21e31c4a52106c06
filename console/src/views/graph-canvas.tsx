import { type KeyboardEvent, useEffect, useId, useRef } from 'react';
import { coloursOf, useThemeTurn } from '../ground/colours';
import { t } from '../texts';
import { type GraphEdge, type GraphNode, Layout, type PlacedNode, radiusOf } from './graph-layout';

/** Colours of types beyond the first five are that of the last. */
export const kindTokens = ['--kind-1', '--kind-2', '--kind-3', '--kind-4', '--kind-5', '--kind-6'] as const;
const tokens = ['--ground', '--text', '--quiet', '--edge', '--accent', ...kindTokens] as const;
type Colours = Record<(typeof tokens)[number], string>;

/** How long nodes are moved in a frame: the rest of it is for drawing, and for whoever types. */
const MOVING_MS = 6;
const [LEAST_SCALE, MOST_SCALE] = [0.1, 4];

/** What is seen: the point in the middle, and how large. It follows the chosen node, all nodes, or nothing. */
interface View {
  x: number;
  y: number;
  scale: number;
  follows: 'all' | 'chosen' | 'nothing';
}

interface Drawn {
  chosen: string | null;
  kindOf: (entityType: string) => number;
  colours: Colours;
}

/** The drawing of a graph, which outlives the renderings of its component. */
class Picture {
  readonly layout = new Layout();
  view: View = { x: 0, y: 0, scale: 1, follows: 'all' };
  #frame = 0;
  #drawn: Drawn | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  show(drawn: Drawn): void {
    this.#drawn = drawn;
    this.draw();
  }

  /** Draws before the next frame, once, however often it is asked. */
  draw(): void {
    this.canvas.dataset.state = 'moving';
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#drawFrame();
    });
  }

  end(): void {
    cancelAnimationFrame(this.#frame);
  }

  move(x: number, y: number): void {
    const { scale } = this.view;
    this.view = { ...this.view, x: this.view.x - x / scale, y: this.view.y - y / scale, follows: 'nothing' };
    this.draw();
  }

  zoom(factor: number): void {
    const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.view.scale * factor));
    this.view = { ...this.view, scale, follows: this.view.follows === 'chosen' ? 'chosen' : 'nothing' };
    this.draw();
  }

  follow(what: View['follows']): void {
    const scale = what === 'chosen' ? Math.max(1, this.view.scale) : this.view.scale;
    this.view = { ...this.view, follows: what, scale };
    this.draw();
  }

  /** The node at a place of the canvas. */
  nodeAt(x: number, y: number): PlacedNode | null {
    const { clientWidth, clientHeight } = this.canvas;
    const atX = this.view.x + (x - clientWidth / 2) / this.view.scale;
    const atY = this.view.y + (y - clientHeight / 2) / this.view.scale;
    // fingers are not exact
    const near = 6 / this.view.scale;
    const hits = this.layout.nodes.filter((node) => Math.hypot(node.x - atX, node.y - atY) <= radiusOf(node) + near);
    return hits.sort((one, other) => distance(one, atX, atY) - distance(other, atX, atY))[0] ?? null;
  }

  /** The nearest node in a direction; of those that the chosen one is connected to, if any is there. */
  nodeBeside(id: string | null, [toX, toY]: readonly [number, number]): PlacedNode | null {
    const { nodes, edges } = this.layout;
    const from = nodes.find((node) => node.id === id);
    if (!from) return [...nodes].sort((one, other) => other.importance - one.importance)[0] ?? null;
    const connected = new Set(
      edges.flatMap(({ source, target }) => (source === from ? [target] : target === from ? [source] : [])),
    );
    const inDirection = ({ x, y }: PlacedNode) => {
      const along = (x - from.x) * toX + (y - from.y) * toY;
      return along > 0 && along >= Math.abs((x - from.x) * toY) + Math.abs((y - from.y) * toX);
    };
    const found = nodes.filter((node) => node !== from && inDirection(node));
    const best = found.some((node) => connected.has(node)) ? found.filter((node) => connected.has(node)) : found;
    return best.sort((one, other) => distance(one, from.x, from.y) - distance(other, from.x, from.y))[0] ?? null;
  }

  #lookAtAll(width: number, height: number): void {
    const { nodes } = this.layout;
    if (nodes.length === 0) return;
    const [left, right] = [Math.min(...nodes.map(({ x }) => x)), Math.max(...nodes.map(({ x }) => x))];
    const [top, bottom] = [Math.min(...nodes.map(({ y }) => y)), Math.max(...nodes.map(({ y }) => y))];
    const fitting = Math.min(width / (right - left + 120), height / (bottom - top + 80));
    const scale = Math.min(1.5, Math.max(LEAST_SCALE, fitting));
    this.view = { ...this.view, x: (left + right) / 2, y: (top + bottom) / 2, scale };
  }

  #drawFrame(): void {
    const { canvas, layout } = this;
    const context = canvas.getContext('2d');
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!context || !this.#drawn || width === 0) return;
    layout.advance(MOVING_MS);
    if (!layout.isAtRest && matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.draw();
      return;
    }
    const chosen = layout.nodes.find(({ id }) => id === this.#drawn?.chosen);
    if (this.view.follows === 'all') this.#lookAtAll(width, height);
    if (this.view.follows === 'chosen' && chosen) this.view = { ...this.view, x: chosen.x, y: chosen.y };
    const density = devicePixelRatio;
    const [pixelsX, pixelsY] = [Math.round(width * density), Math.round(height * density)];
    if (canvas.width !== pixelsX) canvas.width = pixelsX;
    if (canvas.height !== pixelsY) canvas.height = pixelsY;
    const { x, y, scale } = this.view;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.fillStyle = this.#drawn.colours['--ground'];
    context.fillRect(0, 0, width, height);
    context.translate(width / 2, height / 2);
    context.scale(scale, scale);
    context.translate(-x, -y);
    this.#drawGraph(context, this.#drawn, chosen);
    // whoever waits for the picture to rest sees it here
    if (layout.isAtRest) canvas.dataset.state = 'still';
    else this.draw();
  }

  #drawGraph(context: CanvasRenderingContext2D, { colours, kindOf }: Drawn, chosen: PlacedNode | undefined): void {
    const { nodes, edges } = this.layout;
    const { scale } = this.view;
    const isOfChosen = (edge: (typeof edges)[number]) => edge.source === chosen || edge.target === chosen;
    const near = new Set(edges.filter(isOfChosen).flatMap(({ source, target }) => [source, target]));
    context.lineWidth = 1 / scale;
    context.strokeStyle = colours['--edge'];
    context.globalAlpha = chosen ? 0.35 : 0.7;
    context.beginPath();
    for (const { source, target } of edges) {
      context.moveTo(source.x, source.y);
      context.lineTo(target.x, target.y);
    }
    context.stroke();
    context.globalAlpha = 1;
    for (const edge of edges) if (isOfChosen(edge)) drawArrow(context, edge, colours, scale);
    for (const node of nodes) {
      context.globalAlpha = !chosen || node === chosen || near.has(node) ? 1 : 0.45;
      context.fillStyle = colours[kindTokens[kindOf(node.entityType)]!];
      context.beginPath();
      context.arc(node.x, node.y, radiusOf(node), 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
    if (chosen) {
      context.lineWidth = 3 / scale;
      context.strokeStyle = colours['--accent'];
      context.beginPath();
      context.arc(chosen.x, chosen.y, radiusOf(chosen) + 4 / scale, 0, 2 * Math.PI);
      context.stroke();
    }
    this.#drawNames(context, colours, chosen, near);
  }

  /** The names that have room: of the chosen one and its neighbours, of all if there are few, and of the important. */
  #drawNames(
    context: CanvasRenderingContext2D,
    colours: Colours,
    chosen: PlacedNode | undefined,
    near: ReadonlySet<PlacedNode>,
  ): void {
    const { nodes } = this.layout;
    const { scale } = this.view;
    const isNamed = (node: PlacedNode) =>
      node === chosen || near.has(node) || nodes.length <= 60 || scale >= 1.2 || (!chosen && node.importance >= 0.8);
    context.font = `${12 / scale}px system-ui, sans-serif`;
    context.textAlign = 'center';
    context.lineWidth = 3 / scale;
    context.strokeStyle = colours['--ground'];
    context.fillStyle = colours['--text'];
    context.lineJoin = 'round';
    for (const node of nodes) {
      if (!isNamed(node)) continue;
      const name = node.name.length > 28 ? `${node.name.slice(0, 27)}…` : node.name;
      const at = node.y + radiusOf(node) + 13 / scale;
      context.strokeText(name, node.x, at);
      context.fillText(name, node.x, at);
    }
  }
}

const distance = (node: PlacedNode, x: number, y: number) => Math.hypot(node.x - x, node.y - y);

/** A relation of the chosen entity: its direction and its type. */
function drawArrow(
  context: CanvasRenderingContext2D,
  { source, target, type }: { source: PlacedNode; target: PlacedNode; type: string },
  colours: Colours,
  scale: number,
): void {
  const angle = Math.atan2(target.y - source.y, target.x - source.x);
  const gap = radiusOf(target) + 2;
  const [tipX, tipY] = [target.x - gap * Math.cos(angle), target.y - gap * Math.sin(angle)];
  context.strokeStyle = colours['--accent'];
  context.fillStyle = colours['--accent'];
  context.lineWidth = 1.5 / scale;
  context.beginPath();
  context.moveTo(source.x, source.y);
  context.lineTo(tipX, tipY);
  context.stroke();
  context.beginPath();
  context.moveTo(tipX, tipY);
  for (const side of [-0.4, 0.4]) context.lineTo(tipX - 9 * Math.cos(angle + side), tipY - 9 * Math.sin(angle + side));
  context.fill();
  context.font = `${11 / scale}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.lineWidth = 3 / scale;
  context.strokeStyle = colours['--ground'];
  context.fillStyle = colours['--quiet'];
  const [x, y] = [(source.x + target.x) / 2, (source.y + target.y) / 2];
  context.strokeText(type, x, y);
  context.fillText(type, x, y);
}

const directions: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Entities and their relations, drawn. The list beside it says the same in words. */
export function GraphCanvas({
  label,
  nodes,
  edges,
  chosen,
  kindOf,
  onChoose,
}: {
  label: string;
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  chosen: string | null;
  kindOf: (entityType: string) => number;
  onChoose: (id: string | null) => void;
}) {
  const place = useRef<HTMLCanvasElement>(null);
  const picture = useRef<Picture | null>(null);
  const hint = useId();
  const themeTurn = useThemeTurn();
  const choose = useRef(onChoose);
  choose.current = onChoose;
  useEffect(() => {
    const canvas = place.current;
    if (!canvas) return;
    const made = new Picture(canvas);
    picture.current = made;
    const resized = new ResizeObserver(() => made.draw());
    resized.observe(canvas);
    const endPointer = followPointer(canvas, made, (id) => choose.current(id));
    return () => {
      resized.disconnect();
      endPointer();
      made.end();
    };
  }, []);
  useEffect(() => {
    picture.current?.layout.take(nodes, edges);
    picture.current?.draw();
  }, [nodes, edges]);
  useEffect(() => {
    if (chosen) picture.current?.follow('chosen');
  }, [chosen]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn is another colour
  useEffect(() => {
    const canvas = place.current;
    if (canvas) picture.current?.show({ chosen, kindOf, colours: coloursOf(canvas, tokens) });
  }, [chosen, kindOf, themeTurn]);
  const press = (event: KeyboardEvent) => {
    const shown = picture.current;
    if (!shown || event.altKey || event.ctrlKey || event.metaKey) return;
    const direction = directions[event.key];
    const steps: Readonly<Record<string, () => void>> = {
      Escape: () => onChoose(null),
      '+': () => shown.zoom(1.25),
      '-': () => shown.zoom(0.8),
      '0': () => shown.follow('all'),
    };
    const step = direction ? () => onChoose(shown.nodeBeside(chosen, direction)?.id ?? chosen) : steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  return (
    <div className="graph">
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: its keys are its own, as those of a map */}
      <canvas
        ref={place}
        tabIndex={0}
        role="application"
        aria-label={label}
        aria-describedby={hint}
        onKeyDown={press}
      />
      <div className="toolbar">
        <button type="button" className="small" aria-label={t.graph.larger} onClick={() => picture.current?.zoom(1.25)}>
          +
        </button>
        <button type="button" className="small" aria-label={t.graph.smaller} onClick={() => picture.current?.zoom(0.8)}>
          −
        </button>
        <button type="button" className="small" onClick={() => picture.current?.follow('all')}>
          {t.graph.whole}
        </button>
        <small id={hint} className="quiet">
          {t.graph.keys}
        </small>
      </div>
    </div>
  );
}

/** Drags move the picture, clicks choose, wheels with Ctrl and pinches on pads zoom. @returns what ends it */
function followPointer(canvas: HTMLCanvasElement, picture: Picture, onChoose: (id: string | null) => void) {
  let from: { x: number; y: number; isDrag: boolean } | null = null;
  const down = ({ offsetX, offsetY, pointerId }: PointerEvent) => {
    canvas.setPointerCapture(pointerId);
    from = { x: offsetX, y: offsetY, isDrag: false };
  };
  const move = ({ offsetX, offsetY }: PointerEvent) => {
    if (!from) {
      canvas.style.cursor = picture.nodeAt(offsetX, offsetY) ? 'pointer' : 'grab';
      return;
    }
    const [x, y] = [offsetX - from.x, offsetY - from.y];
    // a hand is never quite still
    if (!from.isDrag && Math.hypot(x, y) < 4) return;
    from = { x: offsetX, y: offsetY, isDrag: true };
    picture.move(x, y);
  };
  const up = ({ offsetX, offsetY }: PointerEvent) => {
    if (from && !from.isDrag) onChoose(picture.nodeAt(offsetX, offsetY)?.id ?? null);
    from = null;
  };
  const cancel = () => {
    from = null;
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    picture.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
  };
  canvas.addEventListener('pointerdown', down);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', cancel);
  canvas.addEventListener('wheel', wheel, { passive: false });
  return () => {
    canvas.removeEventListener('pointerdown', down);
    canvas.removeEventListener('pointermove', move);
    canvas.removeEventListener('pointerup', up);
    canvas.removeEventListener('pointercancel', cancel);
    canvas.removeEventListener('wheel', wheel);
  };
}
