#!/bin/bash
# A Kubernetes of one node for trials of the Helm chart, on machines that can install nothing but Debian's packages:
#
#   lab/kubernetes/cluster.sh up                      builds and starts it; about 10 minutes the first time
#   lab/kubernetes/cluster.sh apply --values FILE     installs or upgrades the chart; takes the arguments of `helm template`
#   lab/kubernetes/cluster.sh kubectl get pods
#   lab/kubernetes/cluster.sh down                    stops it and deletes its pods
#
# Debian has no package of the servers of Kubernetes, but its source package for kubectl 1.20.2 contains them. That
# version lacks some fields that the chart uses; for-1.20.mjs leaves them out. The node runs pods on the Docker
# engine of the stand-ins (tests/containers/stand-ins/make.sh), with the images that `docker compose build` has made.
# Pods share Docker's bridge, and nothing enforces network policies. PostgreSQL and Redis run in containers beside it.
# Run it as root on Debian 12.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${CLUSTER_DIR:-/var/tmp/callplane-cluster}
export KUBECONFIG=$work/kubeconfig
SOURCE=kubernetes_1.20.5+really1.20.2
# Docker's bridge: pods reach the node and its name server there.
NODE=172.17.0.1
API_PORT=24643 ETCD_PORT=24790

build() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=120 --no-install-recommends \
    golang-1.19-go etcd-server conntrack iptables socat dnsmasq-base curl openssl >/dev/null
  command -v kubectl >/dev/null || apt-get install -y -qq --no-install-recommends kubernetes-client >/dev/null
  systemctl disable --now etcd 2>/dev/null || true
  local tree=$work/go/src/k8s.io/kubernetes
  if [ ! -d "$tree" ]; then
    mkdir -p "$tree"
    curl --fail --silent --show-error "http://deb.debian.org/debian/pool/main/k/kubernetes/$SOURCE.orig.tar.gz" |
      tar -xz --strip-components=1 -C "$tree"
  fi
  cd "$tree"
  export PATH=/usr/lib/go-1.19/bin:$PATH GO111MODULE=off GOFLAGS='' GOCACHE=$work/cache GOPATH=$work/go CGO_ENABLED=0
  # The release leaves out this file, which its own build generates.
  local generated=pkg/generated/openapi/zz_generated.openapi.go
  if [ ! -e "$generated" ]; then
    go build -o "$work/bin/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
    local packages
    packages=$(grep --include='*.go' -rl '+k8s:openapi-gen=' pkg vendor/k8s.io/*/ | xargs -n1 dirname | sort -u |
      grep -vE 'code-generator|sample-' | sed 's#^#k8s.io/kubernetes/#' | paste -sd,)
    "$work/bin/openapi-gen" -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
      -h hack/boilerplate/boilerplate.generatego.txt --output-base "$work/go/src" -r "$work/violations" >/dev/null
  fi
  # Containers of this machine may not be allowed to lower their OOM score.
  sed -i 's/defaultSandboxOOMAdj int = -998/defaultSandboxOOMAdj int = 0/' pkg/kubelet/dockershim/docker_sandbox.go
  local version=k8s.io/kubernetes/vendor/k8s.io/component-base/version
  for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do
    [ -x "$work/bin/$program" ] || go build -o "$work/bin/$program" \
      -ldflags "-X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" "./cmd/$program"
  done
  cd "$root"
}

start() { # NAME COMMAND…
  local name=$1
  shift
  nohup "$@" >"$work/$name.log" 2>&1 &
  echo $! >>"$work/pids"
}

up() {
  mkdir -p "$work/bin" "$work/tls"
  build
  down
  cd "$work"
  openssl genrsa -out tls/accounts.key 2048 2>/dev/null
  openssl rsa -in tls/accounts.key -pubout -out tls/accounts.pub 2>/dev/null
  local token
  token=$(openssl rand -hex 16)
  echo "$token,admin,1,system:masters" >tls/tokens.csv
  cat >kubeconfig <<YAML
apiVersion: v1
kind: Config
clusters: [{ name: trial, cluster: { server: 'https://127.0.0.1:$API_PORT', insecure-skip-tls-verify: true } }]
users: [{ name: admin, user: { token: $token } }]
contexts: [{ name: trial, context: { cluster: trial, user: admin } }]
current-context: trial
YAML
  cat >kubelet.yaml <<YAML
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
address: 127.0.0.1
failSwapOn: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
clusterDNS: [$NODE]
clusterDomain: cluster.local
authentication: { anonymous: { enabled: true }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
YAML
  start etcd etcd --data-dir etcd --listen-client-urls "http://127.0.0.1:$ETCD_PORT" \
    --advertise-client-urls "http://127.0.0.1:$ETCD_PORT" --listen-peer-urls http://127.0.0.1:24800
  start apiserver bin/kube-apiserver --etcd-servers="http://127.0.0.1:$ETCD_PORT" --secure-port=$API_PORT \
    --insecure-port=0 --bind-address=127.0.0.1 --advertise-address=$NODE --cert-dir=tls --token-auth-file=tls/tokens.csv \
    --authorization-mode=RBAC --service-account-issuer=https://trial --service-account-key-file=tls/accounts.pub \
    --service-account-signing-key-file=tls/accounts.key --service-cluster-ip-range=10.96.0.0/16 \
    --kubelet-preferred-address-types=Hostname
  until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 1; done
  start controllers bin/kube-controller-manager --kubeconfig=kubeconfig --port=0 --secure-port=24657 \
    --bind-address=127.0.0.1 --service-account-private-key-file=tls/accounts.key
  start scheduler bin/kube-scheduler --kubeconfig=kubeconfig --port=0 --secure-port=24659 --bind-address=127.0.0.1
  printf 'FROM debian:12.12-slim\nCMD ["sleep", "infinity"]\n' | docker build --quiet --tag callplane-cluster/pause:1 - >/dev/null
  # `localhost` leads the API server to the kubelet, for `kubectl logs` and `kubectl exec`.
  start kubelet bin/kubelet --kubeconfig=kubeconfig --config=kubelet.yaml --root-dir="$work/kubelet" \
    --hostname-override=localhost --node-ip=$NODE --pod-infra-container-image=callplane-cluster/pause:1 \
    --cert-dir=tls --runtime-cgroups=/ --kubelet-cgroups=/
  start proxy bin/kube-proxy --kubeconfig=kubeconfig --hostname-override=localhost --proxy-mode=iptables \
    --cluster-cidr=172.17.0.0/16 --conntrack-max-per-core=0
  touch hosts
  start names dnsmasq --no-daemon --no-resolv --no-hosts --addn-hosts="$work/hosts" --listen-address=$NODE \
    --bind-interfaces --local=/cluster.local/
  start hosts "$here/cluster.sh" write-hosts
  data
  kubectl wait --for=condition=ready --timeout=60s node/localhost
}

# The servers that the chart expects, and the Secret with their URLs.
data() {
  mkdir -p "$work/infra"
  cp -r "$root/infra/secrets.sh" "$root/infra/redis" "$work/infra/"
  "$work/infra/secrets.sh" >/dev/null
  chmod 755 "$work" "$work/secrets"
  local mount="$work/secrets:/secrets:ro"
  docker run --detach --name callplane-cluster-postgres --volume "$mount" --shm-size 256m --env POSTGRES_USER=callplane \
    --env POSTGRES_DB=callplane --env POSTGRES_PASSWORD_FILE=/secrets/postgres_password postgres:18.4-bookworm \
    postgres -c max_connections=200 >/dev/null
  docker run --detach --name callplane-cluster-redis --volume "$mount" redis:8.8.3-trixie sh -c \
    'exec redis-server --aclfile /secrets/redis_users --appendonly yes --save "" --maxmemory 256mb --maxmemory-policy noeviction --bind 0.0.0.0' \
    >/dev/null
  local postgres redis
  postgres=$(docker inspect --format '{{.NetworkSettings.IPAddress}}' callplane-cluster-postgres)
  redis=$(docker inspect --format '{{.NetworkSettings.IPAddress}}' callplane-cluster-redis)
  sed -i -E "s#@[^@/]+:5432#@$postgres:5432#" "$work"/secrets/*database_url
  sed -i -E "s#@[^@/]+:6379#@$redis:6379#" "$work"/secrets/*redis_url
  kubectl create namespace callplane
  kubectl --namespace callplane create secret generic callplane --from-file="$work/secrets"
}

# The names of a cluster's name server: Services, and the pods of Services without an address.
write_hosts() {
  local domain=svc.cluster.local
  while sleep 2; do
    {
      kubectl get services --all-namespaces --output go-template="{{range .items}}{{if ne .spec.clusterIP \"None\"}}{{.spec.clusterIP}} {{.metadata.name}}.{{.metadata.namespace}}.$domain{{\"\n\"}}{{end}}{{end}}"
      kubectl get endpoints --all-namespaces --output go-template="{{range .items}}{{\$e := .metadata}}{{range .subsets}}{{range .addresses}}{{if .hostname}}{{.ip}} {{.hostname}}.{{\$e.name}}.{{\$e.namespace}}.$domain{{\"\n\"}}{{end}}{{end}}{{end}}{{end}}"
    } >"$work/hosts.new" 2>/dev/null || continue
    cmp --silent "$work/hosts.new" "$work/hosts" && continue
    cp "$work/hosts.new" "$work/hosts"
    pkill -HUP -f "dnsmasq.*$work/hosts" || true
  done
}

apply() {
  local helm
  [ -n "$(ls -d "$root"/.tools/kubernetes-*/helm 2>/dev/null)" ] || (cd "$root" && node scripts/dev.mjs kubernetes)
  helm=$(ls -d "$root"/.tools/kubernetes-*/helm | tail -n 1)
  "$helm" template callplane "$root/infra/helm/callplane" --namespace callplane --kube-version 1.27 \
    --set 'networkPolicy.dataTo[0].ipBlock.cidr=172.17.0.0/16' "$@" >"$work/chart.yaml"
  node "$here/for-1.20.mjs" migration <"$work/chart.yaml" >"$work/migration.json"
  node "$here/for-1.20.mjs" others <"$work/chart.yaml" >"$work/others.json"
  kubectl apply --filename "$work/migration.json"
  kubectl --namespace callplane wait --for=condition=complete --timeout=5m --filename "$work/migration.json"
  kubectl apply --filename "$work/others.json"
}

down() {
  # Before the containers, which the kubelet would start again. Nothing of the cluster is kept.
  if [ -e "$work/pids" ]; then xargs --no-run-if-empty kill -KILL <"$work/pids" 2>/dev/null || true; fi
  rm -f "$work/pids"
  docker ps --all --quiet --filter name='^k8s_' --filter name='^callplane-cluster-' | xargs --no-run-if-empty docker rm --force --volumes >/dev/null
  # Tables of kube-proxy.
  iptables-save | grep -v KUBE- | iptables-restore
  findmnt --noheadings --list --output TARGET | grep "^$work/kubelet" | sort --reverse | xargs --no-run-if-empty umount || true
  rm -rf --one-file-system "${work:?}/etcd" "$work/kubelet" "$work/secrets" "$work/hosts"
}

case ${1:-} in
  up) up ;;
  apply) shift && apply "$@" ;;
  kubectl) shift && exec kubectl --namespace callplane "$@" ;;
  write-hosts) write_hosts ;;
  down) down ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
