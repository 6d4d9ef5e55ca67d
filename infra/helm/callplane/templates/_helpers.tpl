{{/* One name for each resource of a release, such as callplane-api. */}}
{{- define "callplane.name" -}}
{{- if contains "callplane" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-callplane{{ end }}
{{- end }}

{{/* Labels that select the pods of a component. They never change, because selectors are immutable. */}}
{{- define "callplane.selector" -}}
app.kubernetes.io/name: callplane
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "callplane.labels" -}}
{{ include "callplane.selector" . }}
app.kubernetes.io/part-of: callplane
app.kubernetes.io/version: {{ include "callplane.tag" .root | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "callplane.tag" -}}
{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The heap of V8 in a container: two thirds of the memory, of it three semi-spaces of 8 MiB. */}}
{{- define "callplane.nodeOptions" -}}
--enable-source-maps --max-semi-space-size=8 --max-old-space-size={{ sub (div (mul 2 (int .)) 3) 24 }}
{{- end }}

{{/* The heap of V8 for `rtc` in a container of 256 MiB: less than two thirds. */}}
{{- define "callplane.rtcNodeOptions" -}}
--max-semi-space-size=8 --max-old-space-size=128
{{- end }}

{{/*
The ports of the servers in TLS_SERVERS, whose certificates the cleanup workers check, as a list in JSON. The app or
one of its groups has the setting, as in callplane.env.
*/}}
{{- define "callplane.tlsPorts" -}}
{{- $servers := get .app.settings "TLS_SERVERS" }}
{{- range .app.groups }}
{{- $servers = $servers | default (get (index $.root.Values.settings .) "TLS_SERVERS") }}
{{- end }}
{{- $ports := list }}
{{- range splitList "," ($servers | default "") }}
{{- with regexFind "[0-9]+$" (trim .) }}{{ $ports = append $ports (int .) }}{{ end }}
{{- end }}
{{- toJson (uniq $ports) }}
{{- end }}

{{- define "callplane.turnAdminUrls" -}}
{{- $urls := list }}
{{- $name := printf "%s-coturn" (include "callplane.name" .) }}
{{- range $index := until (int .Values.coturn.replicas) }}
{{- $urls = append $urls (printf "telnet://%s-%d.%s:%d" $name $index $name (int $.Values.coturn.adminPort)) }}
{{- end }}
{{- join "," $urls }}
{{- end }}

{{- define "callplane.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* For pods: no root, no rights on the API of Kubernetes. 1000 is `node` of the images. */}}
{{- define "callplane.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  # Lets the process read the files of the Secrets.
  fsGroup: {{ . }}
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "callplane.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* The settings of an app and its secrets, as environment variables. A setting of the app overrides one of a group. */}}
{{- define "callplane.env" -}}
{{- $settings := dict }}
{{- range .app.groups }}
{{- $settings = merge $settings (deepCopy (index $.root.Values.settings .)) }}
{{- end }}
{{- if and (has "media" .app.groups) .root.Values.janus.others }}
{{- $settings = merge $settings (dict "MEDIA_NODES" (join "," .root.Values.janus.others)) }}
{{- end }}
{{- if and (eq .name "cleanup-worker") .root.Values.coturn.enabled }}
{{- $settings = merge $settings (dict "TURN_ADMIN_URLS" (include "callplane.turnAdminUrls" .root)) }}
{{- end }}
{{- if .app.port }}
{{- $settings = merge $settings (dict "PORT" (toString .app.port) "DRAIN_DELAY_MS" (toString .app.drainDelayMs)) }}
{{- end }}
{{- with .app.drainIdleMs }}
{{- $settings = merge $settings (dict "DRAIN_IDLE_MS" (toString .)) }}
{{- end }}
{{- if .app.scratchGiB }}
{{- $settings = merge $settings (dict "RECORDER_SCRATCH_FOLDER" "/var/lib/callplane/scratch/files") }}
{{- end }}
{{- $settings = merge $settings (dict "SHUTDOWN_DEADLINE_MS" (toString .app.shutdownDeadlineMs)) }}
{{- $settings = merge (deepCopy .app.settings) $settings }}
{{- range $setting, $value := $settings }}
- name: {{ $setting }}
  value: {{ $value | quote }}
{{- end }}
{{- range $setting, $key := .app.secrets }}
- name: {{ $setting }}_FILE
  value: /run/secrets/callplane/{{ $key }}
{{- end }}
{{- range .root.Values.secrets.files }}
- name: {{ .setting }}
  value: /run/secrets/callplane/{{ .setting | lower }}
{{- end }}
- name: NODE_OPTIONS
  value: {{ include "callplane.nodeOptions" .app.memoryMiB }}
{{- end }}

{{/* The files of an app: the keys of the Secret that it needs, and of secrets.files. */}}
{{- define "callplane.secretVolume" -}}
- name: {{ .volume | default "secrets" }}
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .root.Values.secrets.existingSecret }}
          items:
            {{- range $setting, $key := .secrets }}
            - { key: {{ $key }}, path: {{ $key }} }
            {{- end }}
      {{- range .root.Values.secrets.files }}
      - {{ if .secret }}secret{{ else }}configMap{{ end }}:
          name: {{ .secret | default .configMap }}
          items:
            - { key: {{ .key }}, path: {{ .setting | lower }} }
      {{- end }}
{{- end }}
