import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationNodeDatum,
} from 'd3-force';

export interface GraphNode {
  id: string;
  name: string;
  entityType: string;
  importance: number;
}

export interface GraphEdge {
  id: string;
  type: string;
  source: string;
  target: string;
}

/** A node with its place in the drawing. */
export interface PlacedNode extends SimulationNodeDatum, GraphNode {
  x: number;
  y: number;
}

export interface PlacedEdge {
  id: string;
  type: string;
  source: PlacedNode;
  target: PlacedNode;
}

/** How often all nodes move before they rest: from the beginning, and after a change. */
const FIRST_STEPS = 300;
const LATER_STEPS = 120;

export const radiusOf = ({ importance }: GraphNode): number => 5 + 6 * importance;

/** Places what is connected close together. It works in small parts, so that a browser can draw in between. */
export class Layout {
  nodes: readonly PlacedNode[] = [];
  edges: readonly PlacedEdge[] = [];
  readonly #simulation = forceSimulation<PlacedNode>().stop();
  #stepsLeft = 0;

  /** Takes what there is now. What was there stays near its place. */
  take(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): void {
    const before = new Map(this.nodes.map((node) => [node.id, node]));
    const isSame = before.size === nodes.length && edges.length === this.edges.length;
    const placed = nodes.map((node) => Object.assign(before.get(node.id) ?? ({} as PlacedNode), node));
    const byId = new Map(placed.map((node) => [node.id, node]));
    this.nodes = placed;
    const formerEdges = new Set(this.edges.map(({ id }) => id));
    this.edges = edges.map(({ id, type, source, target }) => ({
      id,
      type,
      source: byId.get(source)!,
      target: byId.get(target)!,
    }));
    if (isSame && nodes.every(({ id }) => before.has(id)) && edges.every(({ id }) => formerEdges.has(id))) return;
    this.#placeBesideNeighbours(before);
    const isFirst = before.size === 0;
    this.#stepsLeft = isFirst ? FIRST_STEPS : LATER_STEPS;
    this.#simulation
      .nodes(placed)
      .alpha(isFirst ? 1 : 0.4)
      .alphaDecay(1 - 0.001 ** (1 / this.#stepsLeft))
      .force('apart', forceManyBody<PlacedNode>().strength(-160).distanceMax(500))
      .force('together', forceLink<PlacedNode, PlacedEdge>([...this.edges]).distance(70))
      .force('x', forceX<PlacedNode>().strength(0.06))
      .force('y', forceY<PlacedNode>().strength(0.06))
      .force(
        'beside',
        forceCollide<PlacedNode>((node) => radiusOf(node) + 4),
      );
  }

  /** What is new comes beside what it is connected to. */
  #placeBesideNeighbours(before: ReadonlyMap<string, PlacedNode>): void {
    if (before.size === 0) return;
    for (const { source, target } of this.edges)
      for (const [one, other] of [
        [source, target],
        [target, source],
      ] as const)
        if (one.x === undefined && other.x !== undefined) Object.assign(one, { x: other.x + 20, y: other.y + 20 });
  }

  get isAtRest(): boolean {
    return this.#stepsLeft === 0;
  }

  /** Moves the nodes for some milliseconds, by one step at least. */
  advance(milliseconds: number): void {
    const end = performance.now() + milliseconds;
    do {
      if (this.#stepsLeft === 0) return;
      this.#simulation.tick();
      this.#stepsLeft -= 1;
    } while (performance.now() < end);
  }
}
