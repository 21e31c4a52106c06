import { instanceDependents } from '../pipelines/augmentations/step-dependents.ts';
import { stepsOfApp } from '../pipelines/views.ts';
import { ConnectLinks } from '../tools/connect-links/connect-links.ts';
import { EndUserConnections } from '../tools/connect-links/end-user-connections.ts';
import { type MakerOf, OpenLinks } from '../tools/connect-links/open-links.ts';
import { ConnectionService } from '../tools/connections/connection.service.ts';
import { ConnectionCredentials } from '../tools/connections/connection-credentials.ts';
import { ConnectionRefresh } from '../tools/connections/connection-refresh.ts';
import { ConnectionRefusals } from '../tools/connections/connection-refusals.ts';
import { ConnectionRemoval } from '../tools/connections/connection-removal.ts';
import { ConnectionRequirementsReader } from '../tools/connections/connection-requirements.ts';
import { ConnectionTokens } from '../tools/connections/connection-tokens.ts';
import { OAuthProvider } from '../tools/connections/oauth-provider.ts';
import { OAuthStates } from '../tools/connections/oauth-states.ts';
import { ownClientIdAt } from '../tools/connections/own-client.ts';
import { Revocations } from '../tools/connections/revocations.ts';
import { DataTransforms } from '../tools/data-transforms/data-transforms.ts';
import { DocumentReader } from '../tools/imports/document-reader.ts';
import { ServerCredentials } from '../tools/imports/server-credentials.ts';
import { ToolImports } from '../tools/imports/tool-imports.ts';
import { KeptSessions } from '../tools/mcp-servers/kept-sessions.ts';
import { ActionCalls } from '../tools/tool-actions/action-calls.ts';
import { ActionLimits } from '../tools/tool-actions/action-limits.ts';
import { Confirmations } from '../tools/tool-actions/confirmations.ts';
import { LargeAnswers } from '../tools/tool-actions/large-answers.ts';
import { PagedCalls } from '../tools/tool-actions/paged-calls.ts';
import { ToolActions } from '../tools/tool-actions/tool-actions.ts';
import { WholeResults } from '../tools/tool-actions/whole-results.ts';
import { CalledInstances } from '../tools/tool-instances/called-instances.ts';
import { InstancesOfRemovedNamespace } from '../tools/tool-instances/instances-of-removed-namespace.ts';
import { ToolInstanceService } from '../tools/tool-instances/tool-instance.service.ts';
import { ToolInstanceTest } from '../tools/tool-instances/tool-instance.test-call.ts';
import { ProxiedInstances } from '../tools/tool-proxy/proxied-instance.ts';
import { ToolProxy } from '../tools/tool-proxy/tool-proxy.ts';
import { ToolService } from '../tools/tools/tool.service.ts';
import type { Ground } from './ground.ts';
import type { Knowledge } from './knowledge.ts';
import type { VaultGroup } from './vault.ts';

/** How many documents each user may have read. */
const DOCUMENTS_PER_MINUTE = 60;

/** The catalogue of tools, their instances and connections. */
export function createTools(
  { deps, publicUrl, sealFor, logger, open, closed: { outbound } }: Ground,
  vaultGroup: VaultGroup,
  { closed: { linkCaller, resultFiles } }: Knowledge,
) {
  const { sql, changes } = deps;
  const { vault, credentials } = vaultGroup.closed;
  const { secretReads } = vaultGroup.open;
  const { onFault, activity, authentication } = open;
  const provider = new OAuthProvider(outbound);
  const states = new OAuthStates(sealFor('oauth state'));
  const revocations = new Revocations({ credentials, vault, provider, seal: sealFor('revocation') });
  const mcpSessions = new KeptSessions(outbound);
  const endUses = (ids: ReadonlySet<string>) =>
    mcpSessions.endOf(({ connectionId }) => connectionId !== null && ids.has(connectionId));
  const removal = new ConnectionRemoval({ changes, revocations, endUses });
  const refresh = new ConnectionRefresh({ sql, changes, credentials, vault, provider, onFault });
  const refusals = new ConnectionRefusals({ sql, changes, credentials });
  const connections = new ConnectionCredentials({ sql, credentials, refresh, refusals });
  const confirmations = new Confirmations(sealFor('tool confirmation'));
  const limits = new ActionLimits(deps.budgets);
  const toolInstances = new ToolInstanceService({
    ...deps,
    vault,
    credentials,
    secretReads,
    connections: removal,
    dependents: instanceDependents,
  });
  const tools = new ToolService(deps);
  const toolDocuments = new DocumentReader(outbound, deps.budgets.of('tool_documents', DOCUMENTS_PER_MINUTE, 60));
  const dataTransforms = new DataTransforms();
  const makerOf: MakerOf = (caller, maker, permission, place) => linkCaller.demand(caller, maker, permission, place);
  const links = new OpenLinks({ ...deps, makerOf });
  const wholeResults = new WholeResults({
    sql,
    files: resultFiles,
    makerOf,
    seal: sealFor('whole result'),
    publicUrl,
    onFault,
  });
  const largeAnswers = new LargeAnswers({ onFault });
  const calls = new ActionCalls({ outbound, connections, limits, sessions: mcpSessions, largeAnswers });
  return {
    open: {
      tools,
      toolImports: new ToolImports({
        tools,
        documents: toolDocuments,
        serverCredentials: new ServerCredentials({ sql, access: deps.access, connections, activity }),
        outbound,
        ownClientId: () => ownClientIdAt(publicUrl()),
      }),
      toolInstances,
      toolInstanceTests: new ToolInstanceTest({ ...deps, toolInstances, credentials, outbound, connections, activity }),
      toolActions: new ToolActions({
        ...deps,
        authentication,
        instances: new CalledInstances({ ...deps, credentials }),
        confirmations,
        limits,
        calls,
        pagedCalls: new PagedCalls(calls, limits),
        transforms: dataTransforms,
        largeAnswers,
        wholeResults,
        activity,
        logger,
        onFault,
      }),
      toolProxy: new ToolProxy({
        access: deps.access,
        instances: new ProxiedInstances({ sql, credentials }),
        connections,
        outbound,
        limits,
        activity,
        logger,
      }),
      connections: new ConnectionService({
        ...deps,
        credentials,
        vault,
        provider,
        removal,
        refresh,
        publicUrl,
        states,
      }),
      connectLinks: new ConnectLinks({
        ...deps,
        credentials,
        vault,
        provider,
        removal,
        links,
        activity,
        seal: sealFor('connect link'),
        publicUrl,
      }),
      endUserConnections: new EndUserConnections({ ...deps, removal, toolInstances }),
      connectionTokens: new ConnectionTokens({ ...deps, toolInstances, connections }),
      connectionRequirements: new ConnectionRequirementsReader(sql, stepsOfApp),
    },
    closed: {
      toolDocuments,
      wholeResults,
      largeAnswers,
      mcpSessions,
      dataTransforms,
      oauthStates: states,
      toolConfirmations: confirmations,
      connectionCredentials: connections,
      connectionRefresh: refresh,
      connectionRemoval: removal,
      instancesOfRemovedNamespace: new InstancesOfRemovedNamespace({
        access: deps.access,
        dependents: instanceDependents,
      }),
      revocations,
    },
  };
}
