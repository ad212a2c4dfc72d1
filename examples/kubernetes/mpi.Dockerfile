# The image of mpijob.yaml: Stoker's own (packaging/Dockerfile), with an mpirun and an ssh server.
#
#     docker build -f examples/kubernetes/mpi.Dockerfile -t stoker-mpi .
FROM stoker
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends mpich openssh-server openssh-client && \
    rm -rf /var/lib/apt/lists/* && mkdir -p /run/sshd && \
    # the operator mounts the keys with its own modes, and pods have new names each time
    sed -i 's/^#\?StrictModes .*/StrictModes no/' /etc/ssh/sshd_config && \
    printf 'Host *\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n    LogLevel ERROR\n' >>/etc/ssh/ssh_config
ENTRYPOINT []
