/// What a machine refuses, lets vanish, or hides behind its own address. The rules are lines of `nft`.
package struct Firewall: Sendable {
    /// Where a packet is looked at.
    package enum Hook: String, Sendable, CaseIterable {
        /// On its way through; a sender elsewhere sees silence, or the ICMP message of a reject.
        case forward
        /// Sent by a program here; a drop shows to the program as EPERM.
        case output
        /// For a program here.
        case input
    }

    package enum Traffic: String, Sendable {
        case udp = "meta l4proto udp"
        case tcp = "meta l4proto tcp"
        case all = "meta l4proto { tcp, udp, icmp, ipv6-icmp }"
    }

    /// A rule that holds until it is removed.
    package struct Rule: Sendable {
        let hook: Hook
        let handle: String
    }

    let namespace: Namespace

    /// Lets packets vanish.
    package func drop(_ traffic: Traffic, _ hook: Hook = .forward) async throws -> Rule {
        try await add("\(traffic.rawValue) drop", hook)
    }

    /// Answers with ICMP "port unreachable", TCP with a reset where the packet comes by.
    package func reject(_ traffic: Traffic, _ hook: Hook = .forward) async throws -> Rule {
        let answer = traffic == .tcp ? "tcp reset" : "icmpx type port-unreachable"
        return try await add("\(traffic.rawValue) reject with \(answer)", hook)
    }

    /// Adds a rule in the words of `nft`, for example `udp dport 443 ct original packets > 8 drop`.
    package func add(_ rule: String, _ hook: Hook = .forward) async throws -> Rule {
        let answer = try await namespace.nft(
            """
            add table inet rig
            add chain inet rig \(hook.rawValue)_hook { type filter hook \(hook.rawValue) priority 0 ; }
            add rule inet rig \(hook.rawValue)_hook \(rule)
            """)
        let handle = answer.split(separator: "# handle ").last.map { $0.prefix { $0.isNumber } } ?? ""
        guard !handle.isEmpty else { throw RigFailure("nft said: \(answer)") }
        return Rule(hook: hook, handle: String(handle))
    }

    package func remove(_ rule: Rule) async throws {
        try await namespace.nft("delete rule inet rig \(rule.hook.rawValue)_hook handle \(rule.handle)")
    }
}

extension Namespace {
    package var firewall: Firewall { Firewall(namespace: self) }

    // MARK: - Translation of addresses

    /// Hides what this namespace forwards to `interface` behind its address there, with random ports, and lets nothing in
    /// that nobody asked for.
    package func masquerade(on interface: String) async throws {
        try await nft(
            """
            table inet nat {
                chain translate {
                    type nat hook postrouting priority 100 ;
                    oifname "\(interface)" masquerade random
                }
                chain strangers {
                    type filter hook forward priority -10 ;
                    iifname "\(interface)" ct state { new, invalid } drop
                }
                chain own {
                    type filter hook input priority -10 ;
                    iifname "\(interface)" meta l4proto { tcp, udp } drop
                }
            }
            """)
    }

    /// Takes new TCP connections to `port` of whatever address to `localPort` here instead, as a captive portal or an
    /// inspecting proxy does.
    package func interceptTCP(port: UInt16, to localPort: UInt16, from interface: String = "lan0") async throws {
        try await nft(
            """
            add table inet intercept
            add chain inet intercept before { type nat hook prerouting priority -100 ; }
            add rule inet intercept before iifname "\(interface)" tcp dport \(port) redirect to :\(localPort)
            """)
    }

    package func stopIntercepting() async throws { try await nft("delete table inet intercept") }

    /// Forgets the mappings of UDP flows, so that each gets another source port with its next packet.
    package func rebindUDP() async throws {
        for family in ["ipv4", "ipv6"] {
            // It fails where there was nothing to forget.
            _ = try? await run("conntrack", "-D", "-p", "udp", "-f", family)
        }
    }

    /// Forgets all mappings: TCP flows that were open find nobody who knows them.
    package func forgetFlows() async throws { try await run("conntrack", "-F") }

    /// How long a quiet UDP flow keeps its mapping, and a TCP connection, in whole seconds.
    package func setMappingLife(udp: Int, tcp: Int) async throws {
        try await sysctl("net.netfilter.nf_conntrack_udp_timeout", udp)
        try await sysctl("net.netfilter.nf_conntrack_udp_timeout_stream", udp)
        try await sysctl("net.netfilter.nf_conntrack_tcp_timeout_established", tcp)
        // A connection that was forgotten must not be taken up again from its middle.
        try await sysctl("net.netfilter.nf_conntrack_tcp_loose", 0)
    }
}
