# Completion of stoker for fish: 'stoker __complete' prints what may come next.
function __stoker_lines
    set -l words (commandline -opc)
    command stoker __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
function __stoker_candidates
    __stoker_lines | string match -v -r '^\t'
end
function __stoker_takes_a_file
    __stoker_lines | string match -q -r '^\t'
end
complete -c stoker -f -a '(__stoker_candidates)'
complete -c stoker -n __stoker_takes_a_file -F
